import Foundation

#if canImport(Glibc)
import Glibc
#endif

/// A server on the loopback address that sends any bytes. Each connection has a thread.
final class RawOrigin: Sendable {
  struct Connection: Sendable {
    let socket: Int32

    /// Reads to the end of the header fields of a request.
    func head() -> String? {
      var bytes: [UInt8] = []
      var byte: UInt8 = 0
      while !bytes.suffix(4).elementsEqual(Array("\r\n\r\n".utf8)) {
        guard recv(socket, &byte, 1, 0) == 1 else { return nil }
        bytes.append(byte)
      }
      return String(decoding: bytes, as: UTF8.self)
    }

    /// Waits until the client has closed the connection.
    func waitForClient() {
      var byte: UInt8 = 0
      while recv(socket, &byte, 1, 0) > 0 {}
    }

    @discardableResult
    func write(_ text: String) -> Int { write(Array(text.utf8)) }

    /// Returns the number of bytes that the network has taken.
    @discardableResult
    func write(_ bytes: [UInt8]) -> Int {
      var sent = 0
      while sent < bytes.count {
        let count = bytes[sent...].withUnsafeBytes {
          send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard count > 0 else { return sent }
        sent += count
      }
      return sent
    }

    /// Lets writing fail when the client has read nothing for some seconds.
    func limitWriting(_ seconds: Int) {
      var time = timeval(tv_sec: seconds, tv_usec: 0)
      setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Closes the connection by a reset.
    func reset() {
      var option = linger(l_onoff: 1, l_linger: 0)
      setsockopt(socket, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
  }

  let port: Int
  private let listener: Int32

  /// Listens, and answers each connection with a closure, after which the connection is closed.
  init(_ answer: @escaping @Sendable (Connection) -> Void) {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        _ = bind(listener, address, length)
        getsockname(listener, address, &length)
      }
    }
    listen(listener, 64)
    port = Int(UInt16(bigEndian: address.sin_port))
    self.listener = listener
    Thread.detachNewThread {
      while true {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { return }
        Thread.detachNewThread {
          answer(Connection(socket: client))
          close(client)
        }
      }
    }
  }

  deinit {
    shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
  }

  func url(_ path: String = "/") -> URL {
    URL(string: "http://127.0.0.1:\(port)\(path)") ?? .temporaryDirectory
  }
}
