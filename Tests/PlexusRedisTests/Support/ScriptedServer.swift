import Foundation
import PlexusRedis
import PlexusSupport
import TestSupport

/// A server on a port of its own that sends the same bytes to every client, whatever they send, and then hangs up or
/// stays silent.
final class ScriptedServer: Sendable {
  private let listener: Int32
  private let thread: LoopThread
  let port: UInt16

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - bytes: The bytes for every client.
  ///   - hangsUp: Whether the connection ends after the bytes; otherwise the client has to end it.
  init(sending bytes: [UInt8], hangsUp: Bool = true) throws {
    #if canImport(Darwin)
    let type = SOCK_STREAM
    #else
    let type = Int32(SOCK_STREAM.rawValue)
    #endif
    let listener = socket(AF_INET, type, 0)
    self.listener = listener
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        bind(listener, pointer, size) == 0 && getsockname(listener, pointer, &size) == 0
      }
    }
    guard listener >= 0, isBound, listen(listener, 16) == 0 else {
      throw SystemError(call: "listen")
    }
    port = UInt16(bigEndian: address.sin_port)
    thread = try LoopThread {
      while true {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { return }
        var rest = bytes[...]
        while !rest.isEmpty {
          let count = rest.withUnsafeBytes {
            send(client, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
          }
          guard count > 0 else { break }
          rest = rest.dropFirst(count)
        }
        // What the client has sent is read first: closing would take away the bytes above otherwise.
        if hangsUp { shutdown(client, Int32(SHUT_WR)) }
        var received = [UInt8](repeating: 0, count: 4096)
        while read(client, &received, received.count) > 0 {}
        close(client)
      }
    }
  }

  deinit {
    shutdown(listener, Int32(SHUT_RDWR))
    thread.join()
    close(listener)
  }

  var address: RedisAddress { .tcp(host: "127.0.0.1", port: port) }
}
