import Plexus
import PlexusRedis
import TestSupport
import Testing

/// Two versions of a cache in one process, over one connection, whose own changes the server does not announce.
@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Two schemas in one process` {
  private enum Change: CaseIterable, Sendable {
    case clearKey, clearTag, clearAll, clearTagEverywhere, clearAllEverywhere, store, refresh
  }

  @Test(.guarantee(.clearsReachAllSchemas), arguments: Change.allCases, [true, false])
  private func `two schemas in one process change each other's copies`(
    change: Change,
    isOld: Bool
  ) async throws {
    let server = try RedisServer()
    let origin = Guarded(1)
    var options = RedisOptions()
    options.commandTimeout = .seconds(60)
    options.nearLease = .seconds(60)
    let engine = try RedisEngine(server.address, options: options)
    await engine.becomesConnected()
    let maps = ["1", "2"].map { schema in
      MultiplexerMap<String, Int>(
        id: "m",
        cacher: engine.cacher(space: "s", schema: schema),
        tagging: { [CacheTag($0)] }
      ) { _ in origin.withLock { $0 } }
    }
    let (changing, other) = isOld ? (maps[0], maps[1]) : (maps[1], maps[0])
    let repository = MuxRepository()
    changing.register(in: repository)
    for map in maps { #expect(try await map.request("k") == 1) }
    origin.withLock { $0 = 2 }
    switch change {
    case .clearKey: try await changing.clear("k")
    case .clearTag: try await repository.clear(tags: ["k"], .shared)
    case .clearAll: try await repository.clearAll(.shared)
    case .clearTagEverywhere: try await repository.clear(tags: ["k"], .everywhere)
    case .clearAllEverywhere: try await repository.clearAll(.everywhere)
    case .store:
      changing.store(2, for: "k")
      try await changing.flush()
    case .refresh: #expect(try await changing.refresh("k").request("k") == 2)
    }
    for map in [other, changing] { #expect(try await map.request("k") == 2) }
    try await engine.close()
  }
}
