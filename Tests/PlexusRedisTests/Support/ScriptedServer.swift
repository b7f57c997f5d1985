import Foundation
import PlexusRedis
import PlexusSupport
import TestSupport

/// A server on a socket of its own that sends the same bytes to every client, whatever they send, and hangs up.
final class ScriptedServer: Sendable {
  private let folder: URL
  private let listener: Int32
  private let thread: LoopThread

  /// Starts a server.
  ///
  /// - Parameter bytes: The bytes for every client.
  init(sending bytes: [UInt8]) throws {
    folder = FileManager.default.temporaryDirectory
      .appending(path: "script-\(UUID().uuidString.prefix(8))", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let listener = try RedisShell.listen(at: folder.appending(path: "socket").path)
    self.listener = listener
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
        shutdown(client, Int32(SHUT_WR))
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
    try? FileManager.default.removeItem(at: folder)
  }

  var address: RedisAddress { .unix(path: folder.appending(path: "socket").path) }
}
