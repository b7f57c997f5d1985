import Foundation
import TestSupport

/// A Redis server with TLS on a port of 127.0.0.1, with a certificate of an authority of its own.
final class TLSServer: Sendable {
  /// The certificate of a server.
  enum Certificate: String, CaseIterable, Sendable {
    case valid
    /// It is valid for another host.
    case otherHost
    /// Its time is over.
    case expired
    /// It has signed itself.
    case selfSigned
  }

  struct NotStarted: Error {
    let log: String
  }

  private static let openSSL = SystemProgram.path(of: "openssl")

  /// Whether this machine has openssl, and a Redis server that was built with TLS.
  static let isAvailable: Bool = {
    guard openSSL != nil, let server = RedisServer.executable else { return false }
    let process = Process()
    process.executableURL = URL(filePath: server)
    process.arguments = ["--port", "0", "--tls-auth-clients", "no", "--daemonize", "x"]
    let output = Pipe()
    (process.standardOutput, process.standardError) = (output, output)
    guard (try? ProcessThread.run { try process.run() }) != nil else { return false }
    let text = output.fileHandleForReading.readDataToEndOfFile()
    try? ProcessThread.run { process.waitUntilExit() }
    // The value of the last option is wrong, so that it never starts. The one before it is unknown without TLS.
    return String(decoding: text, as: UTF8.self).contains("daemonize")
  }()

  /// Makes an authority, and the key and certificate of a server.
  private static let script = """
    set -e
    new="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    "$0" req -x509 $new -days 2 -subj /CN=Authority -keyout ca.key -out ca.pem
    names=DNS:localhost,IP:127.0.0.1
    days=2
    [ "$1" != otherHost ] || names=DNS:elsewhere.test
    [ "$1" != expired ] || days=-1
    printf 'subjectAltName=%s\\n' "$names" >names.txt
    if [ "$1" = selfSigned ]; then
      "$0" req -x509 $new -days 2 -subj /CN=localhost -addext subjectAltName=$names -keyout key.pem -out cert.pem
    else
      "$0" req $new -subj /CN=server -keyout key.pem -out request.pem
      "$0" x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days $days \
        -extfile names.txt -out cert.pem
    fi
    """

  private let keys: URL
  let server: RedisServer
  let port: UInt16

  /// The certificate of the authority.
  var authority: String { keys.appending(path: "ca.pem").path }

  /// A certificate of the authority, and its key, which a client can use as well.
  var certificate: String { keys.appending(path: "cert.pem").path }
  var key: String { keys.appending(path: "key.pem").path }

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - certificate: Its certificate.
  ///   - options: Further options of its command line.
  init(_ certificate: Certificate = .valid, _ options: [String] = []) throws {
    keys = FileManager.default.temporaryDirectory
      .appending(path: "keys-\(UUID().uuidString.prefix(8))", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: keys, withIntermediateDirectories: true)
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = ["-c", Self.script, Self.openSSL ?? "openssl", certificate.rawValue]
    process.currentDirectoryURL = keys
    let output = Pipe()
    (process.standardOutput, process.standardError) = (output, output)
    try ProcessThread.run { try process.run() }
    let log = output.fileHandleForReading.readDataToEndOfFile()
    try ProcessThread.run { process.waitUntilExit() }
    guard process.terminationStatus == 0 else {
      throw NotStarted(log: String(decoding: log, as: UTF8.self))
    }
    port = try LoopbackSocket().port
    server = try RedisServer(options: Self.options(port, keys) + options)
  }

  /// The options of another server with the same certificate.
  func options(port: UInt16) -> [String] { Self.options(port, keys) }

  private static func options(_ port: UInt16, _ keys: URL) -> [String] {
    func path(_ name: String) -> String { keys.appending(path: name).path }
    return [
      "--tls-port", "\(port)", "--tls-auth-clients", "no", "--tls-cert-file", path("cert.pem"),
      "--tls-key-file", path("key.pem"), "--tls-ca-cert-file", path("ca.pem"),
    ]
  }

  deinit {
    try? FileManager.default.removeItem(at: keys)
  }
}
