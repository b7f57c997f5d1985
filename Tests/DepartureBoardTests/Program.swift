import Foundation
import TestSupport
import Testing

/// The program as a child process.
final class Program: Sendable {
  private let process = Process()
  private let output = Pipe()
  private let errors = Pipe()

  /// Starts the program beside the test bundle.
  ///
  /// - Parameters:
  ///   - arguments: The arguments of the command line.
  ///   - caches: The user's caches folder, or `nil` for no cache, unless the arguments contain a folder.
  ///   - terminal: The terminal for input and output, or `nil` for no input and a pipe.
  ///   - environment: Environment variables in addition to those of the tests.
  ///   - isClogged: Whether its output is a full pipe that is not read.
  ///   - shell: The shell command that starts it; `exec "$0" "$@"` has no further effect.
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
    // The parent process of the tests may have ignored them.
    for number in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] { signal(number, SIG_DFL) }
    // Independent of the terminal of the tests.
    var variables = ["TERM": "xterm-256color", "COLORTERM": "", "NO_COLOR": ""]
    if let caches {
      variables["XDG_CACHE_HOME"] = caches.path(percentEncoded: false)
    } else if !arguments.contains("--cache") {
      // Independent of files of earlier runs.
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
    try ProcessThread.run { [process] in try process.run() }
    // Only the program has the terminal open from here on, so its end is visible on the screen.
    try terminal?.close()
  }

  /// Runs the program to its end.
  static func run(_ arguments: String...) async throws -> Ending {
    try await Program(arguments).ending()
  }

  /// Waits for output and reads at most a kilobyte of it; returns an empty string at its end.
  ///
  /// A pipe holds 64 KiB, half the output of a day, so the program cannot proceed beyond the afternoon before the
  /// next step of the test.
  func someOutput() async -> String {
    await Self.onThread { [output] in
      var buffer = [UInt8](repeating: 0, count: 1024)
      let count = read(output.fileHandleForReading.fileDescriptor, &buffer, buffer.count)
      return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }
  }

  /// Fills a pipe.
  private static func fill(_ pipe: Int32) throws {
    let flags = fcntl(pipe, F_GETFL)
    try #require(fcntl(pipe, F_SETFL, flags | O_NONBLOCK) == 0)
    for count in [4096, 1] {
      let bytes = [UInt8](repeating: 0, count: count)
      while write(pipe, bytes, count) > 0 {}
    }
    try #require(fcntl(pipe, F_SETFL, flags) == 0)
  }

  /// Closes the reading end of its output.
  func closeOutput() throws {
    try output.fileHandleForReading.close()
  }

  func send(_ signal: Int32) {
    kill(process.processIdentifier, signal)
  }

  /// Reads its remaining output, and waits for its end.
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

  /// Runs a blocking operation on a separate thread.
  static func onThread<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { continuation.resume(returning: work()) }
    }
  }

  /// Polls until a condition is true.
  static func wait(until isTrue: @escaping @Sendable () -> Bool) async {
    await onThread {
      // Leaves the processor to the program.
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

/// The results of a program.
struct Ending: Sendable {
  /// The exit status, or -1 if a signal has killed the program.
  let status: Int32
  let output: String
  let errors: String

  /// Returns the number with a name in the summary, or `nil` if there is none.
  func count(_ name: String) -> Int? {
    let line = lines.last { $0.hasPrefix("\(name)  ") }
    return line?.dropFirst(name.count).split(separator: " ").first.flatMap { Int($0) }
  }

  /// Returns the sum of the numbers with some names in the summary; missing ones count as zero.
  func sum(_ names: String...) -> Int {
    names.reduce(0) { $0 + (count($1) ?? 0) }
  }

  /// The lines of the output.
  var lines: [Substring] {
    output.split(whereSeparator: \.isNewline)
  }
}
