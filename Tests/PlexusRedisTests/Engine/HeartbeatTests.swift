import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `The heartbeat of a process` {
  private static let entry = CacheEntry(value: "1", storedAt: .zero)

  private func engine(
    _ server: RedisServer,
    nearLease: Duration = .milliseconds(200)
  ) async throws -> RedisEngine {
    var options = RedisOptions(commandTimeout: .seconds(60))
    options.nearLease = nearLease
    // A heartbeat is sent four times in the shorter one of both leases.
    options.fetchLease = max(nearLease, .seconds(3))
    await RedisShell.waitUntilReady(server)
    let engine = try RedisEngine(server.address, options: options)
    await engine.becomesConnected()
    return engine
  }

  /// Waits until a number of processes are registered for a space, and each of them has counted the others.
  private func registered(_ engines: [RedisEngine], _ monitor: RedisMonitor) async {
    await monitor.commands(engines.count, with: "lua", "\"HGETALL\"")
    await Failover.poll { engines.allSatisfy { $0.status.registeredNodes != nil } }
  }

  @Test(.guarantee(.idleProcessesSendOneCommand))
  func `the heartbeat of a process is one small command, whatever the number of spaces`()
    async throws
  {
    let server = try RedisServer()
    let monitor = try await RedisMonitor(server)
    let engine = try await engine(server)
    let cachers = (0..<20).map { number in
      engine.cacher(String.self, space: "s\(number)", schema: "1")
    }
    for cacher in cachers { _ = try await cacher.entry(forKey: "k") }
    // Each space ends its start with a look at the registrations.
    await monitor.commands(20, with: "lua", "\"HGETALL\"")
    let former = try await monitor.count(with: "\"HELLO\"", on: server)
    let scripts = try await monitor.count(with: "\"EVAL", on: server)
    await monitor.commands(former + 20, with: "\"HELLO\"")
    #expect(try await monitor.count(with: "\"EVAL", on: server) == scripts)
    await Failover.poll { engine.status.trustAge.map { $0 < .seconds(1) } == true }
    withExtendedLifetime(cachers) {}
    try await engine.close()
  }

  /// The losses that the server does not announce are found by the process that clears.
  @Test(
    .guarantee(.lostRegistrationsAreRenewed),
    arguments: [
      "DEL {s}:2:nodes", "DEL {s}:2:acks", "DEL {s}:2:nodes {s}:2:acks", "DEL {s}:2:epoch",
      "DEL {s}:2:fence", "DEL {s}:2:tokens", "DEL {s}:2:schemas", "FLUSHALL", "FLUSHDB",
      "CLIENT KILL TYPE normal SKIPME yes",
    ]
  )
  func `a heartbeat registers a process again after each loss, by the next clear at the latest`(
    command: String
  ) async throws {
    let server = try RedisServer()
    let monitor = try await RedisMonitor(server)
    let engines = [try await engine(server), try await engine(server)]
    let cachers = engines.map { $0.cacher(String.self, space: "s", schema: "1") }
    for cacher in cachers { _ = try await cacher.entry(forKey: "k") }
    try await cachers[0].remove(.keys(["x"]), reach: .everywhere)
    await registered(engines, monitor)
    try RedisShell.perform([command], on: server)
    // A connection that breaks carries out no clear.
    while (try? await cachers[0].remove(.keys(["k"]), reach: .everywhere)) == nil {}
    await Failover.poll {
      (try? RedisShell.run("ZCOUNT {s}:2:nodes 0 +inf", on: server)) == ":2\r\n"
        && (try? RedisShell.run("HLEN {s}:2:acks", on: server)) == ":3\r\n"
    }
    try await cachers[0].remove(.all, reach: .everywhere)
    #expect(try RedisShell.run("ZCOUNT {s}:2:nodes 0 +inf", on: server) == ":2\r\n")
    for engine in engines { try await engine.close() }
  }

  /// The process that finds a loss announces it, and tells the other schemas of its own.
  @Test(.guarantee(.lostRegistrationsAreRenewed), arguments: ["nodes", "acks", "nodes {s}:2:acks"])
  func `a heartbeat registers a process again after a loss that another one finds`(
    deleted: String
  ) async throws {
    let server = try RedisServer()
    let monitor = try await RedisMonitor(server)
    let engines = [
      try await engine(server, nearLease: .seconds(600)),
      try await engine(server, nearLease: .seconds(600)),
    ]
    for engine in engines {
      let cacher = engine.cacher(String.self, space: "s", schema: "1")
      _ = try await cacher.entry(forKey: "k")
    }
    await registered(engines, monitor)
    try RedisShell.perform(["DEL {s}:2:\(deleted)"], on: server)
    let late = engines[0].cacher(String.self, space: "s", schema: "2")
    _ = try await late.entry(forKey: "k")
    await monitor.acknowledgements(3, of: "s")
    await Failover.poll {
      (try? RedisShell.run("ZCOUNT {s}:2:nodes 0 +inf", on: server)) == ":3\r\n"
    }
    #expect(try RedisShell.run("HLEN {s}:2:acks", on: server) == ":4\r\n")
    for engine in engines { try await engine.close() }
  }

  @Test(.guarantee(.lostRegistrationsAreRenewed))
  func `a process receives the announcement of a change after one of its own`() async throws {
    let server = try RedisServer()
    let monitor = try await RedisMonitor(server)
    let engines = [
      try await engine(server, nearLease: .seconds(600)),
      try await engine(server, nearLease: .seconds(600)),
    ]
    let cachers = engines.map { $0.cacher(String.self, space: "s", schema: "1") }
    for cacher in cachers { _ = try await cacher.entry(forKey: "k") }
    await registered(engines, monitor)
    try await cachers[0].remove(.all, reach: .shared)
    // Otherwise, this would wait for the next heartbeat of the first process.
    try await cachers[1].remove(.all, reach: .everywhere)
    #expect(try await cachers[0].entry(forKey: "k") == nil)
    for engine in engines { try await engine.close() }
  }

  /// The server announces no change of a process to the connection that has made it.
  @Test(.guarantee(.lostRegistrationsAreRenewed))
  func `a clear is acknowledged by the other schemas of the process`() async throws {
    let server = try RedisServer()
    let engine = try await engine(server, nearLease: .seconds(600))
    let cachers = ["1", "2"].map { engine.cacher(String.self, space: "s", schema: $0) }
    for cacher in cachers { _ = try await cacher.entry(forKey: "k") }
    // A near lease is longer than the limit of the test.
    for what in [SharedCache.Removal.keys(["k"]), .tags(["t"]), .all, .keys(["k"])] {
      try await cachers[0].remove(what, reach: .everywhere)
      await Failover.poll { cachers[1].trust.holds }
      #expect(try await cachers[1].entry(forKey: "k") == nil)
    }
    try await engine.close()
  }

  @Test(.guarantee(.lostRegistrationsAreRenewed))
  func `the trust in copies ends if a server announces at random`() async throws {
    let server = try RedisServer("--tracking-table-max-keys", "1")
    let monitor = try await RedisMonitor(server)
    let engines = [try await engine(server), try await engine(server)]
    let cachers = engines.map { $0.cacher(String.self, space: "s", schema: "1") }
    for cacher in cachers { try await cacher.store(["k": Self.entry]) }
    await registered(engines, monitor)
    for _ in 0..<5 {
      try await cachers[0].remove(.keys(["k"]), reach: .everywhere)
      #expect(try await cachers[1].entry(forKey: "k") == nil)
      try await cachers[1].store(["k": Self.entry])
    }
    for engine in engines { try await engine.close() }
  }
}
