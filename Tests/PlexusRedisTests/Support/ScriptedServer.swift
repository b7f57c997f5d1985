import Foundation
import PlexusRedis
import PlexusSupport
import TestSupport

/// A server on a port of its own that sends the same bytes to every client, whatever they send, and then hangs up or
/// stays silent.
final class ScriptedServer: Sendable {
  private let listener: LoopbackSocket
  private let thread: LoopThread

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - bytes: The bytes for every client.
  ///   - hangsUp: Whether the connection ends after the bytes; otherwise the client has to end it.
  init(sending bytes: [UInt8], hangsUp: Bool = true) throws {
    let listener = try LoopbackSocket()
    guard listen(listener.descriptor, 16) == 0 else { throw SystemError(call: "listen") }
    self.listener = listener
    thread = try LoopThread {
      while true {
        let client = accept(listener.descriptor, nil, nil)
        guard client >= 0 else { return }
        _ = RedisShell.send(bytes[...], to: client)
        // What the client has sent is read first: closing would take away the bytes above otherwise.
        if hangsUp { shutdown(client, Int32(SHUT_WR)) }
        var received = [UInt8](repeating: 0, count: 4096)
        while read(client, &received, received.count) > 0 {}
        close(client)
      }
    }
  }

  deinit {
    shutdown(listener.descriptor, Int32(SHUT_RDWR))
    thread.join()
  }

  var port: UInt16 { listener.port }

  var address: RedisAddress { .tcp(host: "127.0.0.1", port: port) }
}
