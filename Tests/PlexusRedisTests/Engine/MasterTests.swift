import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `An engine uses only a master` {
  private static let entry = CacheEntry(value: "1", storedAt: .zero)

  private func engine(
    _ address: RedisAddress,
    _ change: (inout RedisOptions) -> Void = { _ in }
  ) throws -> RedisEngine {
    var options = RedisOptions(commandTimeout: .seconds(60), clientName: "test")
    change(&options)
    return try RedisEngine(address, options: options)
  }

  /// Waits until the health satisfies a condition.
  private func health(
    of engine: RedisEngine,
    _ isExpected: (EngineHealth) -> Bool
  ) async -> EngineHealth? {
    for await health in engine.health() where isExpected(health) { return health }
    return nil
  }

  private func isIsolated(_ health: EngineHealth, because part: String) -> Bool {
    if case .isolated(let reason) = health { reason.contains(part) } else { false }
  }

  @Test(.guarantee(.onlyMastersAreUsed))
  func `a replica is not used, and the reason is in the health`() async throws {
    let servers = try await Failover()
    let engine = try engine(servers.second.address)
    let health = await health(of: engine) { isIsolated($0, because: "role is replica") }
    #expect(health != nil)
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    let error = await #expect(throws: RedisEngineError.self) {
      try await cacher.entry(forKey: "k")
    }
    #expect(error?.kind == .notMaster)
    // It can become the master.
    await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .milliseconds(1))
    }
    try RedisShell.perform(["REPLICAOF NO ONE"], on: servers.second)
    try await engine.connect(within: .seconds(60))
    try await cacher.store(["k": Self.entry])
    try await engine.close()
  }

  @Test(.guarantee(.onlyMastersAreUsed))
  func `a master that is demoted is left, and its reason is in the health`() async throws {
    let servers = try await Failover()
    let name = try PointedSocket(to: servers.first)
    let engine = try engine(name.address) { $0.clearReplicas = 1 }
    try await engine.connect(within: .seconds(60))
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    try await cacher.store(["k": Self.entry])
    let node = try EventNode(at: name.address)
    await node.receive(.everyNode())
    await servers.replicate()
    try servers.exchangeRoles()
    try name.point(to: servers.second)
    // A heartbeat or a new connection notices it first.
    let health = await health(of: engine) { health in
      ["READONLY", "role is replica"].contains { isIsolated(health, because: $0) }
    }
    #expect(health != nil)
    try await engine.connect(within: .seconds(60))
    #expect(try await cacher.entry(forKey: "k")?.value == "1")
    #expect(engine.status.reconnections > 0)
    #expect(engine.status.errors[.notMaster, default: 0] > 0)
    // The first server has no replica, and the second one has it again.
    await Failover.poll { (try? RedisShell.run("WAIT 1 100", on: servers.second)) == ":1\r\n" }
    while (try? await cacher.remove(.keys(["k"]), reach: .shared)) == nil {
      await Task.detached {}.value
    }
    // The events' connection is idle, and is found to be one of a replica all the same.
    await node.status { $0.events.health == .connected && $0.reconnections > 0 }
    let sender = try EventNode(servers.second)
    await sender.connect(.publishOnly)
    try await sender.publish("after")
    await node.notes.contains("after")
    for engine in [engine, node.engine, sender.engine] { try await engine.close() }
  }

  @Test(.guarantee(.demotedServersServeNothingCleared), arguments: [false, true])
  func `a value that was cleared at the new master is not served from the old one`(
    isLooked: Bool
  ) async throws {
    let servers = try await Failover()
    let origin = Guarded("1")
    func map(_ engine: RedisEngine) -> MultiplexerMap<String, String> {
      let cacher = engine.cacher(String.self, space: "values", schema: "1")
      return MultiplexerMap(id: "values", cacher: cacher) { _ in origin.withLock { $0 } }
    }
    let proxy = try RedisProxy(servers.first)
    // Heartbeats are refused by the replica, at first without an answer.
    let kept = try engine(proxy.address) {
      $0.nearLease = .milliseconds(400)
      $0.commandTimeout = .milliseconds(100)
    }
    let old = map(kept)
    #expect(try await old.request("k") == "1")
    // The new master knows the registration of the process.
    await servers.replicate()
    try servers.exchangeRoles()
    // The first server follows nothing any longer: it keeps what it has.
    try RedisShell.perform(["REPLICAOF 127.0.0.1 1"], on: servers.first)
    origin.withLock { $0 = "2" }
    let other = try engine(servers.second.address)
    let new = map(other)
    let repository = MuxRepository()
    new.register(in: repository)
    try await repository.clearAll(.everywhere)
    #expect(try await new.request("k") == "2")
    if isLooked {
      let cacher = kept.cacher(String.self, space: "values", schema: "1")
      let entry = try? await cacher.entry(forKey: "values/k")
      #expect(entry?.value != "1")
    }
    #expect(try await old.request("k") == "2")
    for engine in [kept, other] { try await engine.close() }
  }

  @Test(.guarantee(.failoversRecoverInASecond))
  func `kept connections work again within a second of the new master's answer`()
    async throws
  {
    let servers = try await Failover()
    let name = try PointedSocket(to: servers.first)
    let engine = try engine(name.address) { $0.commandTimeout = .milliseconds(250) }
    try await engine.connect(within: .seconds(60))
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    try await cacher.store(["k": Self.entry])
    let node = try EventNode(at: name.address)
    await node.receive(EventNode.group)
    try await node.publish("before")
    await node.notes.contains("before")
    try await servers.failOver()
    try name.point(to: servers.second)
    let stopwatch = Stopwatch()
    while (try? await cacher.store(["k": Self.entry])) == nil { await Task.detached {}.value }
    let caches = stopwatch.elapsed
    try await node.publish("after")
    await node.notes.contains("after")
    let events = stopwatch.elapsed
    print("after a failover: caches \(caches), events \(events)")
    #expect(caches < .seconds(30))
    #expect(events < .seconds(30))
    for engine in [engine, node.engine] { try await engine.close() }
  }

  @Test(.guarantee(.onlyMastersAreUsed)) func `a replica that accepts writes is left as well`()
    async throws
  {
    let servers = try await Failover()
    try RedisShell.perform(["CONFIG SET replica-read-only no"], on: servers.first)
    let engine = try engine(servers.first.address)
    try await engine.connect(within: .seconds(60))
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    try await cacher.store(["k": Self.entry])
    try servers.exchangeRoles()
    #expect(await health(of: engine) { isIsolated($0, because: "role is replica") } != nil)
    try await engine.close()
  }

  /// Replies after which a server is not used.
  static let replies = [
    "READONLY You can't write against a read only replica.", "MOVED 1 127.0.0.1:1",
    "MASTERDOWN Link with MASTER is down", "LOADING Redis is loading the dataset in memory",
    "UNBLOCKED force unblock from blocking operation",
    "ERR Error running script (call to f_1): @user_script:1: -READONLY You can't write.",
  ]

  @Test(.guarantee(.onlyMastersAreUsed), arguments: replies)
  func `a reply of a server that is no master ends the connection`(reply: String) async throws {
    let isRefusing = Guarded(true)
    let server = try AnsweringServer { command in
      switch command.words[0] {
      case "EVAL", "EVALSHA", "SCRIPT": isRefusing.withLock { $0 } ? "-\(reply)\r\n" : command.usual
      default: command.usual
      }
    }
    let engine = try engine(server.address)
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    _ = try? await cacher.entry(forKey: "k")
    let code = reply.hasPrefix("ERR") ? "-READONLY" : String(reply.prefix { $0 != " " })
    #expect(await health(of: engine) { isIsolated($0, because: code) } != nil)
    #expect(server.connectionCount > 0)
    isRefusing.withLock { $0 = false }
    try await engine.close()
  }
}
