import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

/// A server whose memory is full, and that evicts nothing.
@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Caches over a full server` {
  private let server: RedisServer
  private let origin = Guarded("1")

  init() throws {
    server = try RedisServer("--maxmemory-policy", "noeviction")
  }

  private func fill() throws { try RedisShell.perform(["CONFIG SET maxmemory 1"], on: server) }

  @Sendable
  private static func tags(of key: String) -> [CacheTag] { [CacheTag(String(key.prefix(1)))] }

  private func node(
    nearLease: Duration = .seconds(60)
  ) async throws -> (engine: RedisEngine, map: MultiplexerMap<String, String>) {
    var options = RedisOptions()
    options.commandTimeout = .seconds(60)
    options.nearLease = nearLease
    let engine = try RedisEngine(server.address, options: options)
    let cacher = engine.cacher(String.self, space: "s", schema: "1")
    let map = MultiplexerMap<String, String>(id: "m", cacher: cacher, tagging: Self.tags) {
      [origin] _ in origin.withLock { $0 }
    }
    await engine.becomesConnected()
    return (engine, map)
  }

  private enum Change: CaseIterable, Sendable {
    case clearKey, clearTag, clearAll, clearTagEverywhere, clearAllEverywhere, refresh
  }

  @Test(.guarantee(.fullServersCarryOutClears), arguments: Change.allCases)
  private func `a full server removes what is cleared, for all processes`(
    change: Change
  ) async throws {
    let (a, b) = (try await node(), try await node())
    for node in [a, b] { #expect(try await node.map.request("k") == "1") }
    try fill()
    origin.withLock { $0 = "2" }
    let repository = MuxRepository()
    a.map.register(in: repository)
    switch change {
    case .clearKey: try await a.map.clear("k")
    case .clearTag: try await repository.clear(tags: ["k"], .shared)
    case .clearAll: try await repository.clearAll(.shared)
    case .clearTagEverywhere: try await repository.clear(tags: ["k"], .everywhere)
    case .clearAllEverywhere: try await repository.clearAll(.everywhere)
    case .refresh: #expect(try await a.map.refresh("k").request("k") == "2")
    }
    #expect(try await a.map.request("k") == "2")
    if change != .clearTagEverywhere, change != .clearAllEverywhere {
      while try await b.map.request("k") == "1" { await Task.detached {}.value }
    }
    #expect(try await b.map.request("k") == "2")
    // Also for a process that has heard of nothing, once there is memory again.
    try RedisShell.perform(["CONFIG SET maxmemory 0"], on: server)
    let newcomer = try await node()
    #expect(try await newcomer.map.request("k") == "2")
    for node in [a, b, newcomer] { try await node.engine.close() }
  }

  @Test(.guarantee(.fullServersCarryOutClears))
  func `a full server forgets a process that leaves, and what is cleared while another is gone`()
    async throws
  {
    let (a, b) = (try await node(), try await node())
    for node in [a, b] { #expect(try await node.map.request("k") == "1") }
    // A process that dies: its connection ends, and its registration stays.
    let dead = try await node(nearLease: .milliseconds(500))
    #expect(try await dead.map.request("k") == "1")
    try fill()
    try await b.engine.close()
    origin.withLock { $0 = "2" }
    let repository = MuxRepository()
    a.map.register(in: repository)
    // Otherwise, this would wait a minute for the process that has left.
    try await repository.clearAll(.everywhere)
    for node in [a, dead] { #expect(try await node.map.request("k") == "2") }
    for node in [a, dead] { try await node.engine.close() }
  }

  @Test(.guarantee(.fullServersCarryOutClears))
  func `heartbeats keep the trust of processes in their copies over a full server`() async throws {
    let (a, b) = (try await node(nearLease: .milliseconds(400)), try await node())
    #expect(try await a.map.request("k") == "1")
    try fill()
    origin.withLock { $0 = "2" }
    let monitor = try await RedisMonitor(server)
    await monitor.commands(12, with: "\"HELLO\"")
    #expect(try await a.map.request("k") == "1")
    for node in [a, b] { try await node.engine.close() }
  }

  @Test(.guarantee(.clearsEndDespiteEvictions))
  func `a clear ends although a full server evicts at once what it stores`() async throws {
    let (a, b) = (
      try await node(nearLease: .milliseconds(400)), try await node(nearLease: .milliseconds(400))
    )
    for node in [a, b] { #expect(try await node.map.request("k") == "1") }
    try RedisShell.perform(["CONFIG SET maxmemory-policy allkeys-lru"], on: server)
    try fill()
    origin.withLock { $0 = "2" }
    let repository = MuxRepository()
    a.map.register(in: repository)
    for _ in 0..<3 { try? await repository.clearAll(.everywhere) }
    for node in [a, b] { #expect(try await node.map.request("k") == "2") }
    for node in [a, b] { try? await node.engine.close() }
  }

  @Test(.guarantee(.fullServersCarryOutClears))
  func `a full server refuses an event with the reason, and accepts it once there is memory`()
    async throws
  {
    let (engine, _) = try await node()
    let message = LinkMessage(id: "1", type: "t", version: 1, origin: "o", body: [1])
    _ = try await engine.events.publish(message, to: "topic")
    try fill()
    let stopwatch = Stopwatch()
    let error = await #expect(throws: (any Error).self) {
      try await engine.events.publish(message, to: "topic")
    }
    #expect("\(try #require(error))".contains("OOM"))
    #expect(stopwatch.elapsed < RedisOptions().eventTimeout)
    try RedisShell.perform(["CONFIG SET maxmemory 0"], on: server)
    _ = try await engine.events.publish(message, to: "topic")
    try await engine.close()
  }
}
