import Plexus
import PlexusRedis
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `A removal that replicas have to acknowledge` {
  /// A process that clears with a server and a replica.
  private struct Setting: Sendable {
    let pair: Failover
    let node: CacheNode

    init(
      _ origin: Guarded<String> = Guarded("1"),
      _ change: (inout RedisOptions) -> Void
    ) async throws {
      pair = try await Failover()
      node = try await CacheNode(pair.firstAddress) {
        $0.clearReplicas = 1
        change(&$0)
      } fetch: { _ in
        origin.withLock { $0 }
      }
    }

    func end() async throws {
      pair.second.resume()
      // Otherwise, a slow replica can let the end fail.
      await Failover.poll { node.engine.status.owedRemovals == 0 }
      try await node.close()
    }

    /// Lets clears fail without being executed, and suspends the replica before they are repeated.
    func fail(_ removals: [SharedCache.Removal]) async throws {
      try RedisShell.perform(["ACL SETUSER default -del"], on: pair.first)
      for removal in removals {
        await #expect(throws: (any Error).self) {
          try await node.cacher.remove(removal, reach: .shared)
        }
      }
      pair.second.suspend()
      try RedisShell.perform(["ACL SETUSER default +del"], on: pair.first)
    }
  }

  private static let removals: [SharedCache.Removal] = [.keys(["values/k"]), .tags(["k"]), .all]

  @Test(arguments: removals)
  func `stays owed until they have it, and does not empty the cache again and again`(
    removal: SharedCache.Removal
  ) async throws {
    let setting = try await Setting {
      $0.commandTimeout = .milliseconds(400)
      $0.nearLease = .milliseconds(400)
    }
    let (node, server) = (setting.node, setting.pair.first)
    _ = try await node.map.request("k")
    let monitor = try await RedisMonitor(server)
    setting.pair.second.suspend()
    await #expect(throws: (any Error).self) {
      try await node.cacher.remove(removal, reach: .shared)
    }
    // Without an answer to the first one in time, it is repeated until there is one.
    let count = try await monitor.count(with: "\"WAIT\"", on: server)
    await monitor.commands(count + 2, with: "\"WAIT\"")
    #expect(try await node.map.request("k") == "1")
    let fetches = node.fetchCount
    let later = try await monitor.count(with: "\"WAIT\"", on: server)
    await monitor.commands(later + 5, with: "\"WAIT\"")
    #expect(try await node.map.request("k") == "1")
    #expect(node.fetchCount == fetches)
    #expect(node.engine.status.owedRemovals == 1)
    try await setting.end()
  }

  @Test(arguments: ["key", "tag", "all"])
  func `is not repeated by the cache that has made it`(what: String) async throws {
    let setting = try await Setting { $0.commandTimeout = .seconds(1) }
    let (node, server) = (setting.node, setting.pair.first)
    _ = try await node.map.request("k")
    setting.pair.second.suspend()
    await #expect(throws: (any Error).self) {
      switch what {
      case "key": try await node.map.clear("k")
      case "tag": try await node.map.clear(tags: ["k"])
      default: try await node.map.clear()
      }
    }
    #expect(node.engine.status.owedRemovals > 0)
    let monitor = try await RedisMonitor(server)
    for _ in 0..<3 { #expect(try await node.map.request("k") == "1") }
    #expect(node.fetchCount == 2)
    #expect(try await monitor.count(with: "lua", "\"DEL\"", "e:1:values/k", on: server) <= 1)
    try await setting.end()
  }

  @Test func `delays no heartbeat, whose leases are renewed`() async throws {
    let setting = try await Setting {
      $0.commandTimeout = .seconds(600)
      $0.nearLease = .milliseconds(400)
    }
    let (node, server) = (setting.node, setting.pair.first)
    try await setting.fail([.keys(["values/k"])])
    // The wait lasts longer than the test.
    await Failover.poll {
      // A client that is blocked.
      (try? RedisShell.reply("CLIENT LIST", on: server))?.contains("flags=b") == true
    }
    let start = ContinuousClock.now
    await Failover.poll { node.engine.status.lastAnsweredBeat.map { $0 > start } ?? false }
    #expect(node.engine.status.owedRemovals == 1)
    try await setting.end()
  }

  @Test func `is waited for once by the end of the engine, for keys and tags together`()
    async throws
  {
    let setting = try await Setting { options in
      options.commandTimeout = .seconds(1)
      // No heartbeat after the first one repeats the removals before.
      (options.nearLease, options.fetchLease) = (.seconds(3_600), .seconds(3_600))
    }
    await Failover.poll { setting.node.engine.status.lastAnsweredBeat != nil }
    _ = try await setting.node.map.request("k")
    let monitor = try await RedisMonitor(setting.pair.first)
    try await setting.fail([.keys(["values/k"]), .tags(["k"])])
    let count = try await monitor.count(with: "\"WAIT\"", on: setting.pair.first)
    await #expect(throws: RedisEngineError.self) { try await setting.node.close() }
    #expect(try await monitor.count(with: "\"WAIT\"", on: setting.pair.first) == count + 1)
    setting.pair.second.resume()
  }

  @Test
  func `stays owed for the tags that the server has refused, although it has executed others`()
    async throws
  {
    let origin = Guarded("1")
    let setting = try await Setting(origin) {
      $0.commandTimeout = .seconds(1)
      $0.nearLease = .milliseconds(400)
    }
    let (node, server) = (setting.node, setting.pair.first)
    // The first character of a key is its tag.
    let keys = try (0..<79).map { String(try #require(UnicodeScalar(0x4E00 + $0))) } + ["z"]
    for key in keys { #expect(try await node.map.request(key) == "1") }
    origin.withLock { $0 = "2" }
    setting.pair.second.suspend()
    // The server refuses the call that has the last tag, and executes the others.
    try RedisShell.perform(["ACL SETUSER default resetkeys ~*[^z]"], on: server)
    await #expect(throws: (any Error).self) {
      try await node.cacher.remove(.tags(Set(keys.map { CacheTag($0) })), reach: .shared)
    }
    #expect(node.engine.status.owedRemovals > 1)
    try RedisShell.perform(["ACL SETUSER default allkeys"], on: server)
    setting.pair.second.resume()
    await Failover.poll { node.engine.status.owedRemovals == 0 }
    let other = try await CacheNode(setting.pair.firstAddress) { _ in origin.withLock { $0 } }
    for key in keys { #expect(try await other.map.request(key) == "2") }
    try await other.close()
    try await setting.end()
  }

  @Test func `is not undone by a server that has lost it, although it is not repeated`()
    async throws
  {
    let origin = Guarded("1")
    let setting = try await Setting(origin) {
      $0.commandTimeout = .seconds(2)
      $0.nearLease = .milliseconds(400)
    }
    let (node, server) = (setting.node, setting.pair.first)
    #expect(try await node.map.request("k") == "1")
    try RedisShell.perform(["SAVE"], on: server)
    origin.withLock { $0 = "2" }
    setting.pair.second.suspend()
    await #expect(throws: (any Error).self) {
      try await node.cacher.remove(.keys(["values/k"]), reach: .shared)
    }
    server.kill()
    try server.start()
    await RedisShell.waitUntilReady(server)
    await node.engine.becomesConnected()
    #expect(try await node.map.request("k") == "2")
    #expect(node.engine.status.owedRemovals == 1)
    try await setting.end()
  }
}
