import BenchmarkRedis
import Dispatch
import Foundation

/// The cost of one operation.
struct Cost: Codable, Sendable {
  let instructions: Double
  let mallocs: Double
}

/// The part of valgrind that counts instructions and calls.
struct Callgrind {
  /// The command in front of the program: valgrind, confined to one processor.
  ///
  /// The runtime then has one thread for tasks, which makes the order of events the same in every run.
  private let command: [String]
  private let program: URL

  /// Returns `nil` if valgrind is not installed.
  init?() {
    guard let valgrind = Callgrind.find("valgrind"), let program = Bundle.main.executableURL else {
      return nil
    }
    self.program = program
    guard let taskset = Callgrind.find("taskset"), let processor = Callgrind.firstProcessor else {
      print("note: the costs are counted on all processors, and differ a little from run to run")
      command = [valgrind]
      return
    }
    command = [taskset, "-c", processor, valgrind]
  }

  private static func find(_ name: String) -> String? {
    (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
      .map { "\($0)/\(name)" }
      .first(where: FileManager.default.isExecutableFile)
  }

  /// The first processor that this process may use.
  private static var firstProcessor: String? {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("Cpus_allowed_list:") }
    return line?.split(separator: "\t").last.map { String($0.prefix(while: \.isNumber)) }
  }

  /// Returns the cost of one operation: the difference between two processes with different numbers of operations,
  /// which cancels out the start of a process and the set-up of the operation.
  func cost(of operation: Operation) throws -> Cost {
    let few = operation.count / 3
    let short = try total(of: operation, count: few)
    let long = try total(of: operation, count: operation.count)
    let difference = Double(operation.count - few)
    return Cost(
      instructions: Double(long.instructions - short.instructions) / difference,
      mallocs: Double(long.mallocs - short.mallocs) / difference
    )
  }

  private struct Total {
    var instructions = 0
    var mallocs = 0
    var threads = 0
  }

  /// Counts one run, and further ones if it had a second thread for tasks, until two agree.
  ///
  /// The system's queues add a thread after a second, because all threads that wait for valgrind look blocked. The
  /// order of the tasks is then random. Without that thread, runs differ by a few instructions only.
  private func total(of operation: Operation, count: Int) throws -> Total {
    var best = try run(operation, count: count)
    for _ in 0..<4 where best.threads > Callgrind.expectedThreads {
      let next = try run(operation, count: count)
      let difference = abs(next.instructions - best.instructions)
      if (next.threads, next.instructions) < (best.threads, best.instructions) { best = next }
      if difference < best.instructions / 5_000 { break }
    }
    return best
  }

  /// The main thread, one for tasks, and one for timers.
  private static let expectedThreads = 3

  private func run(_ operation: Operation, count: Int) throws -> Total {
    let file = FileManager.default.temporaryDirectory
      .appending(path: "plexus-costs-\(UInt64.random(in: 0 ... .max))")
    defer { try? FileManager.default.removeItem(at: file) }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: command[0])
    process.arguments =
      command.dropFirst() + ["--tool=callgrind", "--callgrind-out-file=\(file.path)"]
      + [program.path, "--operation", operation.name, "\(count)"]
    var environment = ProcessInfo.processInfo.environment
    environment["SWIFT_DETERMINISTIC_HASHING"] = "1"
    let server = try operation.usesRedis ? Self.startServer() : nil
    defer { withExtendedLifetime(server) {} }
    environment[Self.socketVariable] = server?.socket
    process.environment = environment
    let (output, errors) = (Pipe(), Pipe())
    process.standardOutput = output
    process.standardError = errors
    let end = DispatchSemaphore(value: 0)
    process.terminationHandler = { _ in end.signal() }
    try process.run()
    guard end.wait(timeout: .now() + 300) == .success else {
      process.terminate()
      _ = end.wait(timeout: .now() + 10)
      let isOver = !output.fileHandleForReading.availableData.isEmpty
      throw CostError(
        "did not end within 300 s, \(isOver ? "after" : "before") its last operation was over"
      )
    }
    guard process.terminationReason == .exit, process.terminationStatus == 0 else {
      let text = String(decoding: errors.fileHandleForReading.availableData, as: UTF8.self)
      let reason = text.split(separator: "\n").last { !$0.hasPrefix("==") } ?? "valgrind failed"
      throw CostError(String(reason))
    }
    var total = try Callgrind.parse(String(contentsOf: file, encoding: .utf8))
    let text = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    total.threads = Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0
    return total
  }

  /// The variable of the counted process's environment with the socket of the Redis server.
  static let socketVariable = "PLEXUS_COSTS_SOCKET"

  /// Starts a server for one run; valgrind cannot start one.
  private static func startServer() throws -> RedisServer {
    guard RedisServer.executable != nil else {
      throw CostError("redis-server or valkey-server is not installed")
    }
    return try RedisServer()
  }

  /// The number of threads of this process, reported to the counting process; 0 if it is unknown.
  static var threadCount: Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? 0
  }

  /// The functions of the C library that allocate.
  private static let allocators: Set<Substring> = [
    "malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc",
  ]

  /// Reads the report of callgrind, whose format is documented in its manual: `cfn=(id) name` names the
  /// function that is called, by number alone from its second mention on, and `calls=count` follows it.
  private static func parse(_ report: String) throws -> Total {
    var total = Total()
    var isComplete = false
    var allocatorIDs: Set<Substring> = []
    var isAllocator = false
    for line in report.split(separator: "\n") {
      if line.hasPrefix("fn=") || line.hasPrefix("cfn=") {
        let mention = line.drop { $0 != "=" }.dropFirst().split(separator: " ", maxSplits: 1)
        guard let id = mention.first else { continue }
        if mention.count == 2, allocators.contains(mention[1]) { allocatorIDs.insert(id) }
        if line.hasPrefix("cfn=") { isAllocator = allocatorIDs.contains(id) }
      } else if isAllocator, line.hasPrefix("calls=") {
        let count = line.dropFirst("calls=".count).prefix { $0 != " " }
        total.mallocs += Int(count) ?? 0
      } else if line.hasPrefix("totals:") {
        guard let number = line.split(separator: " ").last.flatMap({ Int($0) }) else { continue }
        total.instructions = number
        isComplete = true
      }
    }
    guard isComplete else { throw CostError("the report of callgrind has no totals") }
    return total
  }
}

/// A reason why a cost is unknown.
struct CostError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
