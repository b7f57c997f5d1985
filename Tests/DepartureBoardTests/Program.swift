import Foundation
import Testing

/// The program as a child process.
final class Program: Sendable {
  private let process = Process()
  private let output = Pipe()
  private let errors = Pipe()

  /// Starts the program beside the test bundle.
  ///
  /// - Parameters:
  ///   - arguments: What to tell it.
  ///   - caches: The folder for the caches of all programs; `nil` keeps it from having one, unless the
  ///     arguments say where.
  ///   - terminal: What to give it for input and output; nothing and a pipe if `nil`.
  ///   - environment: Variables that it finds beside those of the tests.
  ///   - isClogged: Whether its output takes nothing, as if nobody read what is in the pipe.
  ///   - shell: What a shell is to do to start it; `exec "$0" "$@"` does that and no more.
  init(
    _ arguments: [String],
    caches: URL? = nil,
    terminal: FileHandle? = nil,
    environment: [String: String] = [:],
    isClogged: Bool = false,
    shell: String? = nil
  ) throws {
    let executable: URL = try #require(Self.executable, "DepartureBoard is not built")
    process.executableURL = executable
    process.arguments = arguments
    // Whoever has started the tests may have them ignored.
    for number in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] { signal(number, SIG_DFL) }
    // Whatever the terminal of the tests is.
    var variables = ["TERM": "xterm-256color", "COLORTERM": "", "NO_COLOR": ""]
    if let caches {
      variables["XDG_CACHE_HOME"] = caches.path(percentEncoded: false)
    } else if !arguments.contains("--cache") {
      // Nothing depends on what an earlier run has left.
      process.arguments = ["--no-cache"] + arguments
    }
    variables.merge(environment) { $1 }
    process.environment = ProcessInfo.processInfo.environment.merging(variables) { $1 }
    if let shell {
      process.executableURL = URL(filePath: "/bin/sh")
      process.arguments = ["-c", shell, executable.path] + (process.arguments ?? [])
    }
    process.standardInput = terminal ?? .nullDevice
    process.standardOutput = terminal ?? output
    process.standardError = errors
    if isClogged { try Self.fill(output.fileHandleForWriting.fileDescriptor) }
    try process.run()
    // From now on the terminal is the program's alone, so that its end is seen on the screen.
    try terminal?.close()
  }

  /// Runs the program to its end.
  static func run(_ arguments: String...) async throws -> Ending {
    try await Program(arguments).ending()
  }

  /// Waits until it has written something, and reads a kilobyte of it at most; nothing at its end.
  ///
  /// A pipe holds 64 KiB, and a whole day is twice as much: a program of which only this was read goes no
  /// further than the afternoon, however late the test is with its next step.
  func someOutput() async -> String {
    await Self.onThread { [output] in
      var buffer = [UInt8](repeating: 0, count: 1024)
      let count = read(output.fileHandleForReading.fileDescriptor, &buffer, buffer.count)
      return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }
  }

  /// Writes to a pipe until it takes nothing more.
  private static func fill(_ pipe: Int32) throws {
    let flags = fcntl(pipe, F_GETFL)
    try #require(fcntl(pipe, F_SETFL, flags | O_NONBLOCK) == 0)
    for count in [4096, 1] {
      let bytes = [UInt8](repeating: 0, count: count)
      while write(pipe, bytes, count) > 0 {}
    }
    try #require(fcntl(pipe, F_SETFL, flags) == 0)
  }

  /// Reads nothing of its output any more.
  func closeOutput() throws {
    try output.fileHandleForReading.close()
  }

  func send(_ signal: Int32) {
    kill(process.processIdentifier, signal)
  }

  /// Reads what it still writes, and waits for its end.
  func ending(readsOutput: Bool = true) async -> Ending {
    await Self.onThread { [self] in
      let text = readsOutput ? output.fileHandleForReading.readDataToEndOfFile() : Data()
      let complaints = errors.fileHandleForReading.readDataToEndOfFile()
      process.waitUntilExit()
      return Ending(
        status: process.terminationReason == .exit ? process.terminationStatus : -1,
        output: String(decoding: text, as: UTF8.self),
        errors: String(decoding: complaints, as: UTF8.self)
      )
    }
  }

  /// Does what blocks on a thread of its own.
  static func onThread<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { continuation.resume(returning: work()) }
    }
  }

  /// Waits until something is the case that nothing announces.
  static func wait(until isTrue: @escaping @Sendable () -> Bool) async {
    await onThread {
      // The program that is waited for needs the processor as well.
      while !isTrue() { poll(nil, 0, 5) }
    }
  }

  private static var executable: URL? {
    let bundles =
      [Bundle.main.bundleURL] + Bundle.allBundles.map { $0.bundleURL.deletingLastPathComponent() }
    return (bundles + [URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()])
      .map { $0.appendingPathComponent("DepartureBoard") }
      .first { FileManager.default.isExecutableFile(atPath: $0.path) }
  }
}

/// What a program leaves behind.
struct Ending: Sendable {
  /// What it tells the shell; -1 if a signal has killed it.
  let status: Int32
  let output: String
  let errors: String

  /// The number in the summary beside a name; `nil` if there is none.
  func count(_ name: String) -> Int? {
    let line = lines.last { $0.hasPrefix("\(name)  ") }
    return line?.dropFirst(name.count).split(separator: " ").first.flatMap { Int($0) }
  }

  /// The numbers in the summary beside some names; zero where there is none.
  func sum(_ names: String...) -> Int {
    names.reduce(0) { $0 + (count($1) ?? 0) }
  }

  /// The lines of the output.
  var lines: [Substring] {
    output.split(whereSeparator: \.isNewline)
  }
}
