import Foundation
import PlexusRedis
import PlexusSupport
import TestSupport

/// A sentinel in a folder of its own, which ends with the last reference.
final class SentinelServer: Sendable {
  let server: RedisServer
  let port: UInt16

  /// Starts a sentinel that monitors a master with the name `main`.
  ///
  /// - Parameters:
  ///   - master: The port of the master.
  ///   - password: The password of the sentinel, if it has one.
  ///   - encryption: The server whose certificate the sentinel has, if it and its master are reached with TLS only.
  init(
    of master: UInt16,
    password: String? = nil,
    encryption: TLSServer? = nil
  ) async throws {
    let port = try LoopbackSocket().port
    self.port = port
    var lines = [
      "sentinel monitor main 127.0.0.1 \(master) 1", "sentinel down-after-milliseconds main 300",
      "sentinel failover-timeout main 3000",
    ]
    if let password { lines.append("requirepass \(password)") }
    server = try RedisServer(
      configuration: lines.joined(separator: "\n") + "\n",
      options: (encryption.map { $0.options(port: port) + ["--tls-replication", "yes"] }
        ?? ["--port", "\(port)"]) + ["--bind", "127.0.0.1", "--sentinel"]
    )
    await RedisShell.waitUntilReady(server)
  }

  var address: RedisAddress { .tcp(host: "127.0.0.1", port: port) }

  /// Waits until the sentinel knows the replica of its master.
  func knowsReplica() async {
    await Failover.poll { [server] in
      (try? RedisShell.reply("SENTINEL REPLICAS main", on: server))?.contains("127.0.0.1") == true
    }
  }
}
