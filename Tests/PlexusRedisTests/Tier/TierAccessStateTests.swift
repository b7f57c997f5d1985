import Plexus
import PlexusSupport
import PlexusTesting
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `The user of an engine` {
  /// Uses every operation of a space.
  ///
  /// - Returns: The operations that have failed.
  private func failures(of tier: Tier) async -> [String] {
    var failures: [String] = []
    func check(_ name: String, _ operation: () async throws -> Bool) async {
      let isDone = (try? await operation()) ?? false
      if !isDone { failures.append(name) }
    }
    var tagged = SharedCache.Wish()
    tagged.tags = ["t"]
    let wish = (key: "k", value: tagged)
    func lease() async throws -> SharedCache.Lease? {
      guard case .granted(let lease, _) = try await tier.look(for: [wish])[0].get() else {
        return nil
      }
      return lease
    }
    await check("fill") {
      guard let lease = try await lease() else { return false }
      guard try await tier.renew([lease]).isEmpty else { return false }
      return try await tier.fill([1], under: lease, tags: ["t"]) == .stored
    }
    await check("read") { try await tier.read(for: [wish])[0].get()?.payload == [1] }
    await check("read several") {
      try await tier.read(for: [wish, wish]).allSatisfy { try $0.get()?.payload == [1] }
    }
    await check("look") {
      guard case .entry = try await tier.look(for: [wish])[0].get() else { return false }
      return true
    }
    await check("outdate") {
      try await tier.outdate(["k", "none"])
      guard let lease = try await lease() else { return false }
      try await tier.release([lease], because: [7])
      return true
    }
    await check("store") {
      try await tier.store([("k", [2], ["t", "u"])])
      return try await tier.read(for: [wish])[0].get()?.payload == [2]
    }
    await check("remove") {
      try await tier.remove(["k"])
      try await tier.remove(tags: ["t"])
      try await tier.removeAll()
      return true
    }
    await check("beat") {
      let mark = try await tier.fence()
      _ = try await tier.beat(acknowledging: mark, trust: .seconds(60))
      try await tier.forget(try await tier.laggards(behind: mark).nodes)
      return try await tier.laggards(behind: mark).nodes == []
    }
    await check("leave") {
      try await tier.leave()
      return true
    }
    return failures
  }

  /// Connects as an engine does.
  private func connect(
    to server: RedisServer,
    replicas: Int = 0
  ) async throws -> (RedisConnection, Tier) {
    var settings = RedisConnection.Settings(server.address)
    settings.credentials = { RedisCredentials(user: "cache", password: "secret") }
    settings.commandTimeout = .seconds(60)
    settings.setup = [RedisCommand("CLIENT", ["TRACKING", "ON", "NOLOOP"])]
    let ended = Log<Void>()
    let connection = try RedisConnection(settings) { event in
      if case .push = event { return }
      ended.append(())
    }
    await ended.first(1)
    return (connection, Tier(space: "users", schema: "1", node: "a", route: Route(connection)))
  }

  /// Gives the server a node that is gone, and forgets the scripts that were loaded.
  private func prepare(_ server: RedisServer, _ rules: [String]) throws {
    let commands = [
      "FLUSHALL", "SCRIPT FLUSH", "ZADD {users}:2:nodes 1 gone", "HSET {users}:2:acks gone x",
      "ACL SETUSER cache reset \(rules.joined(separator: " "))",
    ]
    try RedisShell.perform(commands, on: server)
  }

  @Test(.guarantee(.cacheUsersNeedDocumentedRights))
  func `the user of an engine needs exactly the commands and keys of the article for caches`()
    async throws
  {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    let rules = try AccessRules.rules(of: "cache")
    try prepare(server, rules)
    let (connection, tier) = try await connect(to: server)
    #expect(await failures(of: tier) == [])
    await connection.close()
    for rule in rules where rule.hasPrefix("+") || rule.hasPrefix("~") {
      try prepare(server, rules.filter { $0 != rule })
      let (connection, tier) = try await connect(to: server)
      // Only the check of an engine's new connection loads scripts.
      let failures = await failures(of: tier)
      #expect(rule == "+script|load" || !failures.isEmpty, "\(rule) is not needed")
      await connection.close()
    }
  }

  @Test(.guarantee(.cacheUsersNeedDocumentedRights))
  func `the user of an engine needs the command for scripts that a server does not have`()
    async throws
  {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    let rules = try AccessRules.rules(of: "cache")
    let script = RedisScript("scripts", "return redis.call('GET', KEYS[1])")
    // Known once the server has run it.
    for (missing, isRun) in [("+eval", false), ("", true), ("+eval", true)] {
      let others = rules.filter { $0 != missing }.joined(separator: " ")
      try RedisShell.perform(["ACL SETUSER cache reset \(others)"], on: server)
      let (connection, tier) = try await connect(to: server)
      let result = try? await script.run(on: Route(connection), keys: [tier.names.epoch], [])
      #expect((result != nil) == isRun)
      await connection.close()
    }
  }

  @Test(.guarantee(.cacheUsersNeedDocumentedRights))
  func `the user of an engine can use another space or database only with the rules for it`()
    async throws
  {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    try prepare(server, try AccessRules.rules(of: "cache"))
    var options = RedisOptions()
    options.credentials = { RedisCredentials(user: "cache", password: "secret") }
    options.database = 1
    let engine = try RedisEngine(server.address, options: options)
    for await health in engine.health() {
      guard case .isolated(let reason) = health else { continue }
      #expect(reason.contains("select"))
      break
    }
    try RedisShell.perform(["ACL SETUSER cache +select"], on: server)
    await engine.becomesConnected()
    try await engine.close()
    let (connection, _) = try await connect(to: server)
    let foreign = Tier(space: "other", schema: "1", node: "a", route: Route(connection))
    await #expect(throws: (any Error).self) { try await foreign.removeAll() }
    await connection.close()
  }
}
