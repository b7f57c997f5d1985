import Plexus
import PlexusRedis
import TestSupport
import Testing

/// The values that a process stores before the server has answered its first heartbeat.
@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `A process that begins` {
  private static let keys = (0..<10).map { "k\($0)" }

  /// A process whose heartbeats are rare, so that none but the first one comes during a test.
  private struct Starting: Sendable {
    let engine: RedisEngine

    init(_ address: RedisAddress) throws {
      var options = RedisOptions()
      options.commandTimeout = .seconds(60)
      options.nearLease = .seconds(60)
      options.fetchLease = .seconds(60)
      engine = try RedisEngine(address, options: options)
    }

    func makeMap() -> MultiplexerMap<String, String> {
      MultiplexerMap(
        id: "values",
        cacher: engine.cacher(String.self, space: "values", schema: "1")
      ) { _ in "origin" }
    }

    func isHeard() async {
      await Failover.poll { engine.status.lastAnsweredBeat != nil }
    }
  }

  /// Returns the values of a process that has fetched all keys before.
  private func values(of node: CacheNode) async throws -> Set<String> {
    var values: Set<String> = []
    for key in Self.keys { values.insert(try await node.map.request(key)) }
    return values
  }

  @Test(arguments: [false, true], [false, true])
  func `a process that begins stores values that it has from before its first heartbeat`(
    isConnected: Bool,
    isHeard: Bool
  ) async throws {
    let server = try RedisServer()
    let node = try await CacheNode(server.address) { _ in "origin" }
    #expect(try await values(of: node) == ["origin"])
    let process = try Starting(server.address)
    if isConnected { await process.engine.becomesConnected() }
    let map = process.makeMap()
    for key in Self.keys { map.store("stored", for: key) }
    if isHeard { await process.isHeard() }
    try await map.flush()
    for key in Self.keys { #expect(try await map.request(key) == "stored") }
    while try await values(of: node) != ["stored"] { await Task.detached {}.value }
    #expect(node.fetchCount == Self.keys.count)
    try await process.engine.close()
    try await node.close()
  }

  @Test func `a process that begins does not replace what it can have missed without the server`()
    async throws
  {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    let proxy = try RedisProxy(server)
    proxy.refuse()
    let process = try Starting(proxy.address)
    let map = process.makeMap()
    await process.engine.becomesIsolated()
    for key in Self.keys { map.store("stored", for: key) }
    let node = try await CacheNode(server.address) { _ in "later" }
    #expect(try await values(of: node) == ["later"])
    proxy.endRefusal()
    await process.isHeard()
    try await map.flush()
    #expect(try await values(of: node) == ["later"])
    try await process.engine.close()
    try await node.close()
  }
}
