import Foundation
import LoopbackOrigin
import TestSupport

/// A real nginx on a free port of 127.0.0.1, which serves a folder of its own.
///
/// It ends with the last reference, and with this process however that ends.
final class Nginx: Sendable {
  /// Where nginx is, if this machine has one.
  static let executable = SystemProgram.path(
    of: "nginx",
    alsoIn: ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"]
  )

  let port: UInt16
  private let folder: URL
  private let shell: Guarded<Shell>

  /// The script that keeps the server running until there is something to read, or the writing end is closed.
  private static let script = """
    "$0" -p "$1/" -c nginx.conf </dev/null >/dev/null 2>>errors.txt || exit 1
    echo ready
    read -r _
    kill -QUIT "$(cat nginx.pid)"
    while kill -0 "$(cat nginx.pid 2>/dev/null)" 2>/dev/null; do sleep 0.01; done
    """

  private struct Shell: Sendable {
    let process = Process()
    let input = Pipe()
    let output = Pipe()
  }

  struct NotStarted: Error {
    let log: String
  }

  /// Starts it.
  ///
  /// - Parameters:
  ///   - files: What it serves, by path.
  ///   - locations: The configuration of its locations.
  /// - Throws: ``NotStarted`` if it cannot be.
  init(files: [String: Data], locations: String) throws {
    guard let executable = Self.executable else { throw NotStarted(log: "There is none") }
    folder = FileManager.default.temporaryDirectory
      .appending(path: "nginx-\(UUID().uuidString)", directoryHint: .isDirectory)
    for (path, content) in files {
      let file = folder.appending(path: "files" + path)
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(),
        withIntermediateDirectories: true
      )
      try content.write(to: file)
    }
    var log = ""
    for _ in 0..<5 {
      // It is free now, and may be taken again before nginx has it.
      let origin = try LoopbackOrigin()
      origin.stop()
      try Self.configuration(port: origin.port, locations: locations)
        .write(to: folder.appending(path: "nginx.conf"), atomically: true, encoding: .utf8)
      let shell = Shell()
      shell.process.executableURL = URL(filePath: "/bin/sh")
      shell.process.arguments = ["-c", Self.script, executable, folder.path]
      shell.process.currentDirectoryURL = folder
      shell.process.standardInput = shell.input
      shell.process.standardOutput = shell.output
      try ProcessThread.run { try shell.process.run() }
      // In the background it goes only once it listens.
      if try shell.output.fileHandleForReading.read(upToCount: 5)?.count == 5 {
        port = origin.port
        self.shell = Guarded(shell)
        return
      }
      try ProcessThread.run { shell.process.waitUntilExit() }
      log =
        (try? String(contentsOf: folder.appending(path: "errors.txt"), encoding: .utf8)) ?? ""
    }
    try? FileManager.default.removeItem(at: folder)
    throw NotStarted(log: log)
  }

  deinit {
    stop()
    try? FileManager.default.removeItem(at: folder)
  }

  var address: String { "http://127.0.0.1:\(port)" }

  /// Replaces a file, and what tells its version.
  func write(_ content: Data, to path: String, modified: Date) throws {
    let file = folder.appending(path: "files" + path)
    try content.write(to: file)
    try FileManager.default.setAttributes([.modificationDate: modified], ofItemAtPath: file.path)
  }

  /// Ends it.
  ///
  /// - Returns: A line for each request: the status, the path, If-None-Match, If-Modified-Since, Range, If-Range.
  @discardableResult
  func stop() -> [String] {
    shell.withLock { shell in
      guard shell.process.isRunning else { return }
      try? shell.input.fileHandleForWriting.write(contentsOf: Data("\n".utf8))
      try? ProcessThread.run { [process = shell.process] in process.waitUntilExit() }
    }
    let log = try? String(contentsOf: folder.appending(path: "access.txt"), encoding: .utf8)
    return log?.split(separator: "\n").map(String.init) ?? []
  }

  private static func configuration(port: UInt16, locations: String) -> String {
    """
    daemon on;
    master_process off;
    pid nginx.pid;
    error_log errors.txt;
    events { worker_connections 64; }
    http {
      log_format plain escape=none
        '$status $uri $http_if_none_match $http_if_modified_since $http_range $http_if_range';
      access_log access.txt plain;
      client_body_temp_path body;
      proxy_temp_path proxy;
      fastcgi_temp_path fastcgi;
      uwsgi_temp_path uwsgi;
      scgi_temp_path scgi;
      types { text/plain txt; }
      default_type application/octet-stream;
      server {
        listen 127.0.0.1:\(port);
        root files;
        \(locations)
      }
    }
    """
  }
}
