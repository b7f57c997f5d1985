import Plexus
import PlexusRedis
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `A removal that replicas have to acknowledge` {
  private func epoch(_ server: RedisServer) throws -> Int {
    let reply = try RedisShell.reply("GET {values}:2:epoch", on: server)
    return Int(reply.split(separator: "\r\n").last?.prefix { $0 != "-" } ?? "") ?? -1
  }

  @Test func `stays owed until they have it, and does not empty the cache again and again`()
    async throws
  {
    let ports = [try LoopbackSocket().port, try LoopbackSocket().port]
    let server = try RedisServer(
      "--port",
      "\(ports[0])",
      "--bind",
      "127.0.0.1",
      "--repl-diskless-sync-delay",
      "0"
    )
    let monitor = try await RedisMonitor(server)
    let options = RedisOptions(
      commandTimeout: .milliseconds(200),
      nearLease: .milliseconds(400),
      clearReplicas: 1
    )
    let engine = try RedisEngine(server.address, options: options)
    try await engine.connect(within: .seconds(60))
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    while (try? await cacher.entry(forKey: "k")) == nil, engine.status.registeredNodes == nil {
      await Task.detached {}.value
    }
    await #expect(throws: RedisEngineError.self) { try await cacher.remove(.all, reach: .shared) }
    let first = try epoch(server)
    // Each repetition waits for the replicas.
    let count = try await monitor.count(with: "\"WAIT\"", on: server)
    await monitor.commands(count + 8, with: "\"WAIT\"")
    #expect(engine.status.owedRemovals == 1)
    // It can be that the server did not get the first one, and the answer to a heartbeat can be from before it.
    #expect(try epoch(server) <= first + 2)
    let replica = try RedisServer(
      "--port",
      "\(ports[1])",
      "--bind",
      "127.0.0.1",
      "--replicaof",
      "127.0.0.1",
      "\(ports[0])"
    )
    await Failover.poll { engine.status.owedRemovals == 0 }
    await RedisShell.waitUntilReady(replica)
    #expect(try epoch(replica) == epoch(server))
    try await engine.close()
  }
}
