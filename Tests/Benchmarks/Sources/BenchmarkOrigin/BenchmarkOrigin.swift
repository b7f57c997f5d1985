import Foundation
import Synchronization

/// An HTTP server on 127.0.0.1 that answers every request with the same body.
///
/// Each connection has a thread. `LoopbackOrigin` of the library belongs to another package, which has no product for it.
public final class BenchmarkOrigin: Sendable {
  /// The URL of the server without a path.
  public let address: String
  private let connections = Connections()

  /// The open sockets of a server, also the one that listens.
  private final class Connections: Sendable {
    private let sockets = Mutex<Set<Int32>>([])

    /// Serves a socket on a new thread, and closes it then.
    func add(_ socket: Int32, _ serve: @escaping @Sendable () -> Void) {
      sockets.withLock { _ = $0.insert(socket) }
      Thread.detachNewThread { [self] in
        serve()
        sockets.withLock { _ = $0.remove(socket) }
        close(socket)
      }
    }

    /// Lets all threads end, since no call on a socket succeeds any longer.
    func shutDown() {
      sockets.withLock { for socket in $0 { shutdown(socket, Int32(SHUT_RDWR)) } }
    }
  }

  /// Creates a server and begins to serve.
  ///
  /// - Parameter byteCount: The number of bytes of the body.
  /// - Throws: A `POSIXError` if there is no socket or port left.
  public init(byteCount: Int) throws {
    // A client that leaves is noticed when a write fails.
    signal(SIGPIPE, SIG_IGN)
    let (listener, port) = try Self.listen()
    address = "http://127.0.0.1:\(port)"
    let head = "HTTP/1.1 200 OK\r\nContent-Length: \(byteCount)\r\n\r\n"
    let answer = Array(head.utf8) + [UInt8](repeating: 7, count: byteCount)
    connections.add(listener) { [connections] in
      while case let socket = accept(listener, nil, nil), socket >= 0 {
        connections.add(socket) { Self.serve(socket, answer) }
      }
    }
  }

  deinit {
    connections.shutDown()
  }

  private static func listen() throws -> (socket: Int32, port: UInt16) {
    #if canImport(Darwin)
    let stream = SOCK_STREAM
    #else
    let stream = Int32(SOCK_STREAM.rawValue)
    #endif
    let listener = socket(AF_INET, stream, 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(listener, address, length) == 0 && Foundation.listen(listener, 256) == 0
          && getsockname(listener, address, &length) == 0
      }
    }
    guard status else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    return (listener, UInt16(bigEndian: address.sin_port))
  }

  /// Answers the requests of a connection, which have no bodies, one after another.
  private static func serve(_ socket: Int32, _ answer: [UInt8]) {
    var request: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = read(socket, &buffer, buffer.count)
      guard count > 0 else { break }
      request += buffer.prefix(count)
      guard request.suffix(4).elementsEqual("\r\n\r\n".utf8) else { continue }
      request = []
      guard send(answer, to: socket) else { break }
    }
  }

  private static func send(_ answer: [UInt8], to socket: Int32) -> Bool {
    answer.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = write(socket, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        guard count > 0 else { return false }
        rest = rest.dropFirst(count)
      }
      return true
    }
  }
}
