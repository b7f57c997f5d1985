public import Foundation

/// A real Redis server on a socket in a folder of its own, which writes nothing to disk by itself.
///
/// It ends with the last reference, and with this process however that ends.
public final class RedisServer: Sendable {
  /// The server's program, if this machine has one.
  public static let executable = SystemProgram.path(
    of: "redis-server",
    "valkey-server",
    alsoIn: ["/usr/local/bin", "/opt/homebrew/bin"]
  )

  /// Ends the server when there is something to read, or when the process that could write has ended.
  private static let script = """
    "$@" </dev/null >>log.txt 2>&1 &
    server=$!
    echo $server
    read -r _
    kill -KILL $server 2>/dev/null
    """

  private struct Shell: Sendable {
    let process = Process()
    let input = Pipe()
    let output = Pipe()
    var server: pid_t = 0
  }

  /// The folder of the server.
  public let folder: URL
  private let options: [String]
  private let environment: [String: String]
  private let hasConfiguration: Bool
  private let shell: Guarded<Shell?>

  /// Starts a server.
  ///
  /// - Parameter options: Options of its command line in addition to those for the socket and the disk.
  public convenience init(_ options: String...) throws {
    try self.init(options: options)
  }

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - configuration: The content of a file of its configuration, which can be that of a sentinel, and which the server
  ///     can change; `nil` for none.
  ///   - options: Options of its command line in addition to those for the socket and the disk.
  ///   - environment: Its environment in addition to that of this process.
  public init(
    configuration: String? = nil,
    options: [String],
    environment: [String: String] = [:]
  ) throws {
    folder = FileManager.default.temporaryDirectory
      .appending(path: "redis-\(UUID().uuidString.prefix(8))", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    self.options = options
    self.environment = environment
    if let configuration {
      try Data(configuration.utf8).write(to: folder.appending(path: "redis.conf"))
    }
    hasConfiguration = configuration != nil
    shell = Guarded(nil)
    try start()
  }

  deinit {
    kill()
    try? FileManager.default.removeItem(at: folder)
  }

  /// The path of its socket.
  public var socket: String { folder.appending(path: "socket").path }

  /// Starts the server again after ``kill()``.
  public func start() throws {
    var shell = Shell()
    shell.process.executableURL = URL(filePath: "/bin/sh")
    shell.process.arguments =
      [
        "-c", Self.script, "sh", Self.executable ?? "redis-server",
      ] + (hasConfiguration ? ["redis.conf"] : []) + [
        "--port", "0", "--unixsocket", "socket", "--save", "", "--appendonly", "no", "--dir",
        folder.path,
      ] + options
    shell.process.currentDirectoryURL = folder
    if !environment.isEmpty {
      shell.process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    }
    shell.process.standardInput = shell.input
    shell.process.standardOutput = shell.output
    try ProcessThread.run { [process = shell.process] in try process.run() }
    var line = Data()
    while line.last != UInt8(ascii: "\n"),
      let byte = try shell.output.fileHandleForReading.read(upToCount: 1)
    {
      line += byte
    }
    shell.server = pid_t(String(decoding: line.dropLast(), as: UTF8.self)) ?? 0
    self.shell.withLock { [shell] in $0 = shell }
  }

  /// Ends the server as a crash does.
  public func kill() {
    guard let shell = shell.withLock({ $0.take() }) else { return }
    try? shell.input.fileHandleForWriting.write(contentsOf: Data("\n".utf8))
    try? ProcessThread.run { shell.process.waitUntilExit() }
  }

  /// Lets the server stand still until ``resume()``: it keeps its connections, and answers nothing.
  public func suspend() {
    signal(SIGSTOP)
  }

  /// Lets the server continue.
  public func resume() {
    signal(SIGCONT)
  }

  private func signal(_ number: Int32) {
    let server = shell.withLock { $0?.server ?? 0 }
    if server > 0 { Foundation.kill(server, number) }
  }
}
