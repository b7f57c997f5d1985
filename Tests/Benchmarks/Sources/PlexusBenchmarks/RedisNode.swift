import Foundation
import Plexus
import PlexusRedis
import Synchronization

/// A process of the rows for Redis, which has a map over a server and answers each command with a line.
///
/// | Command | Answer |
/// |---|---|
/// | `get KEY` | the value |
/// | `fetches` | the number of fetches of the process so far |
/// | `clear` | the time that `clearAll(.everywhere)` took, in milliseconds |
enum RedisNode {
  /// Starts processes of this program, and waits until they are connected.
  static func start(
    _ count: Int,
    _ socket: String,
    fetchTime: Duration = .milliseconds(300)
  ) async throws -> [LineProcess] {
    guard let program = Bundle.main.executableURL else {
      throw NotMeasurable("no path to the program")
    }
    let milliseconds =
      fetchTime.components.seconds * 1_000
      + fetchTime.components.attoseconds / 1_000_000_000_000_000
    let nodes = try (0..<count).map { _ in
      try LineProcess(program.path, ["--redis-node", socket, "\(milliseconds)"])
    }
    for node in nodes { _ = try await node.nextLine() }
    return nodes
  }

  /// Carries out the commands of the standard input.
  static func run(_ arguments: [String]) async throws {
    guard arguments.count == 2, let milliseconds = Int(arguments[1]) else {
      throw UsageError("--redis-node takes a socket and milliseconds")
    }
    let engine = try await connectedEngine(arguments[0])
    let fetches = Counter()
    let map = MultiplexerMap<String, String>(
      id: "nodes",
      cacher: engine.cacher(space: "nodes", schema: "1")
    ) { key in
      fetches.count.add(1, ordering: .relaxed)
      if milliseconds > 0 { try await Task.sleep(for: .milliseconds(milliseconds)) }
      return "value of \(key)"
    }
    map.register()
    answer("ready")
    for await line in lines() {
      let words = line.split(separator: " ", maxSplits: 1)
      switch words.first {
      case "get": answer(try await map.request(String(words.last ?? "")))
      case "fetches": answer("\(fetches.count.load(ordering: .relaxed))")
      default:
        let time = try await nanoseconds(per: 1_000_000) {
          try await MuxRepository.shared.clearAll(.everywhere)
        }
        answer("\(time)")
      }
    }
    try await engine.close()
  }

  private final class Counter: Sendable {
    let count = Atomic(0)
  }

  /// The lines of the standard input, which are read on a thread of their own.
  private static func lines() -> AsyncStream<String> {
    let (lines, continuation) = AsyncStream.makeStream(of: String.self)
    Thread.detachNewThread {
      while let line = readLine() { continuation.yield(line) }
      continuation.finish()
    }
    return lines
  }

  private static func answer(_ text: String) {
    FileHandle.standardOutput.write(Data("\(text)\n".utf8))
  }
}

/// A process that is sent lines and answers with lines. It ends with the last reference.
final class LineProcess: Sendable {
  private let process = Process()
  private let input = Pipe()
  private let lines: AsyncStream<String>

  init(_ program: String, _ arguments: [String], reportsErrors: Bool = true) throws {
    let output = Pipe()
    if !reportsErrors { process.standardError = FileHandle.nullDevice }
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    // The process ends with its input, of which the other processes have no end.
    _ = fcntl(input.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC)
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    let (lines, continuation) = AsyncStream.makeStream(of: String.self)
    self.lines = lines
    let file = output.fileHandleForReading
    Thread.detachNewThread {
      var rest: [UInt8] = []
      while let data = try? file.read(upToCount: 1), !data.isEmpty {
        guard data.first == UInt8(ascii: "\n") else {
          rest += data
          continue
        }
        continuation.yield(String(decoding: rest, as: UTF8.self))
        rest = []
      }
      continuation.finish()
    }
  }

  deinit {
    end()
  }

  func end() {
    try? input.fileHandleForWriting.close()
    if process.isRunning { process.terminate() }
  }

  func send(_ line: String) {
    input.fileHandleForWriting.write(Data("\(line)\n".utf8))
  }

  func nextLine() async throws -> String {
    for await line in lines { return line }
    throw NotMeasurable("a process has ended")
  }

  func ask(_ line: String) async throws -> String {
    send(line)
    return try await nextLine()
  }
}
