import Foundation
import Plexus
import PlexusRedis
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Clears that replicas acknowledge` {
  private static let commandTimeout = Duration.seconds(2)

  /// A server with replicas that have its data.
  private struct Servers: Sendable {
    let server: RedisServer
    let replicas: [RedisServer]

    init(replicas count: Int) async throws {
      let port = try LoopbackSocket().port
      let server = try RedisServer(
        "--port",
        "\(port)",
        "--bind",
        "127.0.0.1",
        "--repl-diskless-sync-delay",
        "0"
      )
      await RedisShell.waitUntilReady(server)
      var replicas: [RedisServer] = []
      for _ in 0..<count {
        replicas.append(try RedisServer("--replicaof", "127.0.0.1", "\(port)"))
      }
      // Replicas that have just begun to follow acknowledge nothing before.
      await Failover.poll {
        (try? RedisShell.run("WAIT \(count) 100", on: server)) == ":\(count)\r\n"
      }
      (self.server, self.replicas) = (server, replicas)
    }
  }

  private func engine(
    _ server: RedisServer,
    replicas: Int,
    _ change: (inout RedisOptions) -> Void = { _ in }
  ) async throws -> RedisEngine {
    var options = RedisOptions()
    options.commandTimeout = Self.commandTimeout
    options.nearLease = .seconds(60)
    options.fetchLease = .seconds(60)
    options.clearReplicas = replicas
    change(&options)
    let engine = try RedisEngine(server.address, options: options)
    await engine.becomesConnected()
    return engine
  }

  private static let removals: [SharedCache.Removal] = [.keys(["k"]), .tags(["t"]), .all]

  @Test(.guarantee(.clearsWaitForReplicas), arguments: removals, [ClearReach.shared, .everywhere])
  func `a clear throws while a replica is missing, and returns once it is there`(
    removal: SharedCache.Removal,
    reach: ClearReach
  ) async throws {
    let servers = try await Servers(replicas: 2)
    let engine = try await engine(servers.server, replicas: 2)
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    let entry = CacheEntry(value: "1", storedAt: .zero)
    try await cacher.store(["k": entry])
    try await cacher.remove(removal, reach: reach)
    servers.replicas[1].suspend()
    do {
      try await cacher.remove(removal, reach: reach)
      Issue.record("A replica has not acknowledged the clear.")
    } catch {
      let errors = (error as? CacherError).map { Array($0.failures.values) } ?? [error]
      let error = errors.first as? RedisEngineError
      // On a slow machine, the reply that says how many replicas are missing can be late itself.
      let saysWhy = ["1 replicas", "or those before it"].contains { "\(errors)".contains($0) }
      #expect(error?.kind == .timedOut || error?.kind == .refused && saysWhy, "\(errors)")
    }
    // Neither a store nor a look needs the replicas.
    try await cacher.store(["k": entry])
    _ = try await cacher.look(for: ["k": SharedCache.Wish()])
    servers.replicas[1].resume()
    try await cacher.remove(removal, reach: reach)
    try await engine.close()
  }

  @Test(.guarantee(.clearsWaitForReplicas))
  func `a clear that a replica has not acknowledged stays owed`() async throws {
    let servers = try await Servers(replicas: 1)
    let engine = try await engine(servers.server, replicas: 1) { $0.nearLease = .milliseconds(400) }
    let map = MultiplexerMap<String, String>(
      id: "values",
      cacher: engine.cacher(String.self, space: "values", schema: "1")
    ) { _ in "1" }
    _ = try await map.request("k")
    let monitor = try await RedisMonitor(servers.server)
    func waits() async throws -> Int {
      try await monitor.count(with: "\"WAIT\"", on: servers.server)
    }
    servers.replicas[0].suspend()
    await #expect(throws: (any Error).self) { try await map.clear("k") }
    let first = try await waits()
    #expect(first > 0)
    // No request fails, or waits for the replica.
    #expect(try await map.request("k") == "1")
    await monitor.commands(first + 1, with: "\"WAIT\"")
    #expect(engine.status.owedRemovals == 1)
    servers.replicas[0].resume()
    await Failover.poll { engine.status.owedRemovals == 0 }
    let settled = try await waits()
    #expect(try await map.request("k") == "1")
    #expect(try await waits() == settled)
    try await engine.close()
  }

  @Test(.guarantee(.clearsWaitForReplicas))
  func `other commands do not wait behind a clear that waits for a replica`() async throws {
    let servers = try await Servers(replicas: 1)
    let engine = try await engine(servers.server, replicas: 1) { $0.commandTimeout = .seconds(60) }
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    servers.replicas[0].suspend()
    let monitor = try await RedisMonitor(servers.server)
    let clear = Task { try await cacher.remove(.keys(["k"]), reach: .shared) }
    await monitor.commands(1, with: "\"WAIT\"")
    try await cacher.store(["k": CacheEntry(value: "1", storedAt: .zero)])
    guard case .entry? = try await cacher.look(for: ["k": SharedCache.Wish()])["k"] else {
      Issue.record("The value was not stored.")
      return
    }
    servers.replicas[0].resume()
    try await clear.value
    try await engine.close()
  }

  @Test func `a clear throws without replicas, and after the end of its engine`() async throws {
    let server = try RedisServer()
    let engine = try await engine(server, replicas: 1) { $0.commandTimeout = .milliseconds(250) }
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    await #expect(throws: (any Error).self) { try await cacher.remove(.all, reach: .shared) }
    try? await engine.close()
    await #expect(throws: (any Error).self) { try await cacher.remove(.all, reach: .shared) }
  }

  @Test(.guarantee(.clearsWaitForReplicas), .startsProcess)
  func `a negative number of replicas is a programming error`() async {
    await #expect(processExitsWith: .failure) {
      var options = RedisOptions()
      options.clearReplicas = -1
      _ = try RedisEngine(.unix(path: "/nowhere"), options: options)
    }
  }
}
