import Foundation
import TestSupport

/// A real TLS server on a free port of 127.0.0.1, with a certificate that it has signed itself.
///
/// It ends with the last reference, and with this process however that ends.
final class OpenSSLServer: Sendable {
  /// Where openssl is, if this machine has it.
  static let executable = SystemProgram.path(of: "openssl")

  let port: UInt16
  private let folder: URL
  private let shell: Guarded<Shell>

  private struct Shell: Sendable {
    let process = Process()
    let input = Pipe()
    let output = Pipe()
  }

  struct NotStarted: Error {
    let log: String
  }

  /// The script that keeps the server running until there is something to read, or the writing end is closed.
  private static let script = """
    "$0" req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
      -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout key.pem -out cert.pem 2>errors.txt || exit 1
    "$0" s_server -accept 127.0.0.1:0 -cert cert.pem -key key.pem -www </dev/null 2>>errors.txt &
    read -r _
    kill $!
    """

  /// Starts it.
  ///
  /// - Throws: ``NotStarted`` if it cannot be.
  init() throws {
    guard let executable = Self.executable else { throw NotStarted(log: "There is none") }
    folder = FileManager.default.temporaryDirectory
      .appending(path: "openssl-\(UUID().uuidString)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let shell = Shell()
    shell.process.executableURL = URL(filePath: "/bin/sh")
    shell.process.arguments = ["-c", Self.script, executable]
    shell.process.currentDirectoryURL = folder
    shell.process.standardInput = shell.input
    shell.process.standardOutput = shell.output
    try ProcessThread.run { try shell.process.run() }
    // It says `ACCEPT 127.0.0.1:49152` once it listens.
    var said = ""
    while !said.contains("ACCEPT") || !said.hasSuffix("\n") {
      let bytes = shell.output.fileHandleForReading.availableData
      guard !bytes.isEmpty else { throw NotStarted(log: said) }
      said += String(decoding: bytes, as: UTF8.self)
    }
    let line = said.split(separator: "\n").first { $0.contains("ACCEPT") } ?? ""
    guard let port = line.split(separator: ":").last.flatMap({ UInt16($0) }) else {
      throw NotStarted(log: said)
    }
    self.port = port
    self.shell = Guarded(shell)
  }

  deinit {
    shell.withLock { shell in
      try? shell.input.fileHandleForWriting.write(contentsOf: Data("\n".utf8))
      try? ProcessThread.run { [process = shell.process] in process.waitUntilExit() }
    }
    try? FileManager.default.removeItem(at: folder)
  }
}
