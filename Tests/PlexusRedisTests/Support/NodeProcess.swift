import Foundation
import TestSupport
import Testing

/// A process with a map over a Redis server, which can be stopped and killed: the program `SharedNode`.
final class NodeProcess: Sendable {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private let answers = Log<String>()

  /// The program beside the test bundle.
  private static let executable: URL? = {
    let folders = [
      Bundle.main.bundleURL, URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent(),
    ]
    return folders.map { $0.appending(path: "SharedNode") }
      .first { FileManager.default.isExecutableFile(atPath: $0.path) }
  }()

  /// Starts the process, and waits until it is connected.
  ///
  /// Commands have a minute: tests do not depend on how busy the machine is.
  ///
  /// - Parameters:
  ///   - server: The server.
  ///   - proxy: The proxy by which it connects, if any.
  ///   - socket: The path of the server, if it is another name.
  ///   - sentinel: The port of the sentinel that knows the server, if any.
  ///   - cluster: The cluster of the server, if it is a node of one.
  ///   - nearLease: The time for which it trusts its copies, in milliseconds.
  ///   - fetchLease: The time for which its leases last, in milliseconds.
  ///   - commandTimeout: The time that it waits for the server, in milliseconds.
  ///   - outboxBytes: The number of bytes that can wait to be sent.
  ///   - clearReplicas: The number of replicas that acknowledge a clear.
  ///   - schema: The version of its values.
  ///   - clock: Its wall clock, if it has one of its own.
  init(
    _ server: RedisServer,
    through proxy: RedisProxy? = nil,
    at socket: String? = nil,
    of sentinel: UInt16? = nil,
    in cluster: RedisCluster? = nil,
    nearLease: Int = 60_000,
    fetchLease: Int = 60_000,
    commandTimeout: Int = 60_000,
    outboxBytes: Int = 16 << 20,
    clearReplicas: Int = 0,
    schema: String = "1",
    clock: SkewedClock? = nil
  ) async throws {
    let executable: URL = try #require(Self.executable, "SharedNode is not built")
    process.executableURL = executable
    process.arguments = [
      "socket=\(proxy?.socket ?? socket ?? server.socket)", "folder=\(server.folder.path)",
      "nearLease=\(nearLease)", "fetchLease=\(fetchLease)", "commandTimeout=\(commandTimeout)",
      "outboxBytes=\(outboxBytes)", "clearReplicas=\(clearReplicas)", "schema=\(schema)",
    ]
    if let sentinel { process.arguments?.append("sentinel=\(sentinel)") }
    if let cluster {
      let ports = cluster.ports.map(\.description).joined(separator: ",")
      process.arguments?.append("cluster=\(ports)")
    }
    if let clock {
      process.environment = ProcessInfo.processInfo.environment
        .merging(clock.environment) { $1 }
    }
    // The process ends with its input, of which the other processes have no end.
    _ = fcntl(input.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC)
    process.standardInput = input
    process.standardOutput = output
    let rest = Guarded(Data())
    output.fileHandleForReading.readabilityHandler = { [answers] handle in
      let data = handle.availableData
      guard !data.isEmpty else {
        handle.readabilityHandler = nil
        return
      }
      let lines = rest.withLock { rest -> [String] in
        rest += data
        let parts = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        rest = Data(parts.last ?? Data())
        return parts.dropLast().map { String(decoding: $0, as: UTF8.self) }
      }
      for line in lines { answers.append(line) }
    }
    try ProcessThread.run { [process] in try process.run() }
    await answers.first(1)
  }

  /// Returns a process that has fetched `2` by itself, after its server has stopped with `1`.
  static func behindHangingServer() async throws -> (
    server: RedisServer, origin: OriginFiles, node: NodeProcess
  ) {
    let server = try RedisServer()
    let origin = try OriginFiles(server)
    let node = try await NodeProcess(server, nearLease: 500, commandTimeout: 250)
    #expect(try await node.ask("get k") == "1")
    server.suspend()
    try origin.set("2")
    // A copy is used until the end of the lease, and no longer.
    while try await node.ask("get k") == "1" {}
    #expect(node.lastAnswer == "2")
    return (server, origin, node)
  }

  deinit {
    // Also if it is stopped.
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
  }

  /// Sends a command, without waiting for its answer.
  func send(_ command: String) throws {
    try input.fileHandleForWriting.write(contentsOf: Data("\(command)\n".utf8))
  }

  /// Sends a command and waits for the next answer.
  func ask(_ command: String) async throws -> String {
    let count = answerCount
    try send(command)
    return await nextAnswer(after: count)
  }

  /// Sends a command and waits for the next answer that begins with some text.
  ///
  /// - Returns: The rest of the answer.
  func ask(_ command: String, for prefix: String) async throws -> String {
    let count = answerCount
    try send(command)
    let matches: @Sendable (String) -> Bool = { $0.hasPrefix(prefix) }
    await answers.wait { $0.dropFirst(count).contains(where: matches) }
    let answer = answers.entries.dropFirst(count).first(where: matches) ?? ""
    return String(answer.dropFirst(prefix.count))
  }

  /// Waits until the process has ended a number of commands with an answer that satisfies a condition.
  func answers(_ count: Int, where matches: @escaping @Sendable (String) -> Bool) async {
    await answers.wait { $0.count(where: matches) >= count }
  }

  /// The number of answers so far.
  var answerCount: Int { answers.count }

  /// Waits for the answer that follows a number of others.
  func nextAnswer(after count: Int) async -> String {
    await answers.first(count + 1)[count]
  }

  /// Waits for an answer.
  func answers(_ answer: String) async {
    await answers.contains(answer)
  }

  /// The answers so far.
  var allAnswers: [String] { answers.entries }

  /// The last answer.
  var lastAnswer: String? { answers.entries.last }

  /// The largest number of bytes that the process has had in memory so far, where the system tells.
  var peakMemory: Int? {
    let path = "/proc/\(process.processIdentifier)/status"
    guard let status = try? String(contentsOfFile: path, encoding: .utf8),
      let match = status.firstMatch(of: /VmHWM:\s+(\d+) kB/)
    else { return nil }
    return Int(match.1).map { $0 << 10 }
  }

  func die() {
    kill(process.processIdentifier, SIGKILL)
  }

  func stop() {
    kill(process.processIdentifier, SIGSTOP)
  }

  func goOn() {
    kill(process.processIdentifier, SIGCONT)
  }
}

/// The files by which the processes of a test share an origin, as the program describes them.
struct OriginFiles: Sendable {
  private let folder: URL

  init(_ server: RedisServer) throws {
    folder = server.folder
    try set("1")
    try Data().write(to: folder.appending(path: "fetches"))
  }

  func set(_ value: String) throws {
    try Data(value.utf8).write(to: folder.appending(path: "origin"), options: .atomic)
  }

  /// Lets fetches that begin from now on hang until they are admitted, or not.
  func hold(_ isHeld: Bool) throws {
    let file = folder.appending(path: "hold")
    if isHeld { try Data().write(to: file) } else { try FileManager.default.removeItem(at: file) }
  }

  /// The number of fetches so far.
  var fetchCount: Int {
    get throws {
      try String(contentsOf: folder.appending(path: "fetches"), encoding: .utf8)
        .split(separator: "\n").count
    }
  }
}
