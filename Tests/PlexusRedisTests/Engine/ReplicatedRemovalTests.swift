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

  @Test(.guarantee(.owedRemovalsEmptyThreeTimesAtMost), arguments: removals)
  func `a removal stays owed until replicas have it, and does not empty the cache repeatedly`(
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

  @Test(.guarantee(.owedRemovalsEmptyThreeTimesAtMost), arguments: ["key", "tag", "all"])
  func `a replicated removal is not repeated by the cache that has made it`(
    what: String
  ) async throws {
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

  @Test(.guarantee(.owedRemovalsEmptyThreeTimesAtMost))
  func `a replicated removal delays no heartbeat, whose leases are renewed`() async throws {
    let setting = try await Setting {
      $0.commandTimeout = .seconds(600)
      $0.nearLease = .milliseconds(400)
    }
    let (node, server) = (setting.node, setting.pair.first)
    try await setting.fail([.keys(["values/k"])])
    // The wait lasts longer than the test.
    await isWaiting(on: server)
    let start = ContinuousClock.now
    await Failover.poll { node.engine.status.lastAnsweredBeat.map { $0 > start } ?? false }
    #expect(node.engine.status.owedRemovals == 1)
    try await setting.end()
  }

  /// Waits until the replicas are waited for.
  private func isWaiting(on server: RedisServer) async {
    await Failover.poll {
      // A client that is blocked.
      (try? RedisShell.reply("CLIENT LIST", on: server))?.contains("flags=b") == true
    }
  }

  /// Removes an entry.
  ///
  /// - Returns: The error, if there is one.
  @Sendable
  private static func clear(_ key: String, by node: CacheNode) async -> (any Error)? {
    do {
      try await node.cacher.remove(.keys([key]), reach: .shared)
      return nil
    } catch {
      return (error as? CacherError)?.failures[key] ?? error
    }
  }

  @Test
  func `a replicated removal is executed, whether or not earlier ones still wait for a replica`()
    async throws
  {
    let setting = try await Setting {
      $0.commandTimeout = .seconds(1)
      $0.nearLease = .milliseconds(400)
    }
    let node = setting.node
    setting.pair.second.suspend()
    #expect(await Self.clear("first", by: node) != nil)
    await isWaiting(on: setting.pair.first)
    await withTaskGroup { group in
      for key in ["a", "b", "c"] { group.addTask { await Self.clear(key, by: node) } }
      // That of a removal that was not executed has another kind.
      for await error in group { #expect((error as? RedisEngineError)?.kind == .refused) }
    }
    #expect(node.engine.status.owedRemovals == 4)
    try await setting.end()
  }

  @Test func `a removal reaches other processes although the wait for a replica has not ended`()
    async throws
  {
    let origin = Guarded("1")
    let setting = try await Setting(origin) { $0.commandTimeout = .seconds(600) }
    let node = setting.node
    let other = try await CacheNode(setting.pair.firstAddress) { _ in origin.withLock { $0 } }
    #expect(try await other.map.request("k") == "1")
    setting.pair.second.suspend()
    let first = Task { await Self.clear("values/other", by: node) }
    await isWaiting(on: setting.pair.first)
    origin.withLock { $0 = "2" }
    let second = Task { await Self.clear("values/k", by: node) }
    while try await other.map.request("k") == "1" { await Task.detached {}.value }
    // The end of one caller is none of the wait of the others.
    second.cancel()
    #expect(await second.value is CancellationError)
    #expect(node.engine.status.owedRemovals == 1)
    setting.pair.second.resume()
    #expect(await first.value == nil)
    try await other.close()
    try await setting.node.close()
  }

  @Test func `a replicated removal shares its wait with others at the same time, in all spaces`()
    async throws
  {
    let setting = try await Setting { $0.commandTimeout = .seconds(60) }
    let (node, server) = (setting.node, setting.pair.first)
    let monitor = try await RedisMonitor(server)
    setting.pair.second.suspend()
    let first = Task { await Self.clear("first", by: node) }
    await isWaiting(on: server)
    let cachers = (0..<20).map { node.engine.cacher(String.self, space: "\($0)", schema: "1") }
    try await withThrowingTaskGroup { group in
      for cacher in cachers {
        for number in 0..<5 {
          group.addTask { try await cacher.remove(.keys(["k\(number)"]), reach: .shared) }
        }
      }
      await monitor.commands(100, with: "lua", "\"DEL\"", ":e:1:k")
      setting.pair.second.resume()
      try await group.waitForAll()
    }
    #expect(await first.value == nil)
    // The one in progress, the next one, and those of removals whose replies were still on their way.
    let count = try await monitor.count(with: "\"WAIT\"", on: server)
    #expect((2...5).contains(count))
    try await setting.end()
  }

  @Test func `a replicated removal throws at the end of its engine, which does not wait for it`()
    async throws
  {
    let setting = try await Setting { $0.commandTimeout = .seconds(600) }
    let node = setting.node
    setting.pair.second.suspend()
    let clears = ["a", "b"].map { key in Task { await Self.clear(key, by: node) } }
    await isWaiting(on: setting.pair.first)
    try await node.close()
    for clear in clears { #expect(await clear.value is RedisEngineError) }
    setting.pair.second.resume()
  }

  @Test(.guarantee(.owedRemovalsEmptyThreeTimesAtMost))
  func `the end of the engine waits once for replicated removals of keys and tags together`()
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
  func `a replicated removal stays owed for tags that a server refused, whatever it removed`()
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

  @Test(.guarantee(.owedRemovalsEmptyThreeTimesAtMost))
  func `a replicated removal is neither repeated nor undone by a server that has lost it`()
    async throws
  {
    let origin = Guarded("1")
    let setting = try await Setting(origin) {
      $0.commandTimeout = .seconds(2)
      $0.nearLease = .milliseconds(400)
    }
    let (node, server) = (setting.node, setting.pair.first)
    #expect(try await node.map.request("k") == "1")
    await setting.pair.save()
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
