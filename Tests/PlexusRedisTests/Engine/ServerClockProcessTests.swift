import TestSupport
import Testing

/// A server whose wall clock is set while processes use it.
@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed"),
  .enabled(if: SkewedClock.compiler != nil, "there is no C compiler, or no LD_PRELOAD")
)
struct `Processes over a server whose clock is set` {
  private static let hour = 3_600

  private let clock: SkewedClock
  private let server: RedisServer
  private let origin: OriginFiles

  init() throws {
    clock = try SkewedClock(ahead: 0)
    server = try RedisServer(options: [], environment: clock.environment)
    origin = try OriginFiles(server)
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete), arguments: [5, hour, -5, -hour])
  func `stopped processes, too, return nothing older than a clear if the server's clock is set`(
    step: Int
  ) async throws {
    let stopped = try await NodeProcess(server, nearLease: 3_000)
    let node = try await NodeProcess(server, nearLease: 3_000)
    for node in [node, stopped] { #expect(try await node.ask("get k") == "1") }
    stopped.stop()
    try clock.set(ahead: step)
    try origin.set("2")
    #expect(try await node.ask("clear") == "cleared")
    let count = stopped.answerCount
    try stopped.send("get k")
    stopped.goOn()
    #expect(await stopped.nextAnswer(after: count) == "2")
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete))
  func `a clear waits for a killed process for its near lease only, if the clock is set`()
    async throws
  {
    let doomed = try await NodeProcess(server, nearLease: 1_000)
    let node = try await NodeProcess(server)
    #expect(try await doomed.ask("get k") == "1")
    doomed.die()
    // Otherwise, this would wait an hour.
    try clock.set(ahead: -Self.hour)
    #expect(try await node.ask("clear") == "cleared")
    // Its registration is gone.
    let monitor = try await RedisMonitor(server)
    let nodes = "EVAL \"return #redis.call('ZRANGEBYSCORE','{values}:2:nodes',0,'+inf')\" 0"
    #expect(try RedisShell.run(nodes, on: server) == ":1\r\n")
    _ = monitor
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete), arguments: [true, false])
  func `the fetch of a killed process is taken over, whether others wait when the clock is set`(
    waits: Bool
  ) async throws {
    let doomed = try await NodeProcess(server, fetchLease: 500)
    let heir = try await NodeProcess(server, fetchLease: 500)
    try origin.hold(true)
    try doomed.send("get k")
    await doomed.answers("fetching")
    try origin.hold(false)
    let monitor = try await RedisMonitor(server)
    let count = heir.answerCount
    if waits {
      try heir.send("get k")
      await monitor.looks(for: "k", by: 1)
    }
    doomed.die()
    try clock.set(ahead: -Self.hour)
    if !waits { try heir.send("get k") }
    // Otherwise, this would wait an hour.
    #expect(await heir.nextAnswer(after: count) == "1")
    #expect(try origin.fetchCount == 2)
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete), arguments: [hour, -hour])
  func `processes fetch once, although the clock of the server is set during the fetch`(
    step: Int
  ) async throws {
    let nodes = [
      try await NodeProcess(server, fetchLease: 3_000),
      try await NodeProcess(server, fetchLease: 3_000),
    ]
    let monitor = try await RedisMonitor(server)
    try origin.hold(true)
    try nodes[0].send("get k")
    await nodes[0].answers("fetching")
    try origin.hold(false)
    try nodes[1].send("get k")
    await monitor.looks(for: "k", by: 2)
    try clock.set(ahead: step)
    // Longer than a lease: both processes send four heartbeats within it.
    await monitor.commands(12, with: "\"HELLO\"")
    try nodes[0].send("admit")
    for node in nodes { await node.answers("1") }
    #expect(try origin.fetchCount == 1)
  }
}

/// A server that is replaced by its replica, whose wall clock is another one.
@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed"),
  .enabled(if: SkewedClock.compiler != nil, "there is no C compiler, or no LD_PRELOAD")
)
struct `Processes whose server is replaced by one with another clock` {
  private static let hour = 3_600

  /// The servers, and the name that leads to the master.
  private struct World {
    private let clock: SkewedClock
    let servers: Failover
    let name: PointedSocket
    let origin: OriginFiles

    init(ahead seconds: Int) async throws {
      clock = try SkewedClock(ahead: seconds)
      servers = try await Failover(clock: clock)
      name = try PointedSocket(to: servers.first)
      origin = try OriginFiles(servers.first)
    }

    func node(nearLease: Int = 60_000, fetchLease: Int = 60_000) async throws -> NodeProcess {
      try await NodeProcess(
        servers.first,
        at: name.path,
        nearLease: nearLease,
        fetchLease: fetchLease
      )
    }

    /// Replaces the first server, which follows no other: it keeps what it has, and announces nothing.
    func failOver() async throws {
      await servers.replicate()
      try RedisShell.perform(["REPLICAOF NO ONE"], on: servers.second)
      try RedisShell.perform(["REPLICAOF 127.0.0.1 1"], on: servers.first)
      try name.point(to: servers.second)
    }
  }

  @Test(arguments: [5, hour, -5, -hour])
  func `processes over a new server with another clock find fresh entries, and nothing cleared`(
    step: Int
  ) async throws {
    let world = try await World(ahead: step)
    let node = try await world.node(nearLease: 6_000)
    let stopped = try await world.node(nearLease: 6_000)
    for node in [node, stopped] { #expect(try await node.ask("get k") == "1") }
    stopped.stop()
    try await world.failOver()
    try world.origin.set("2")
    let late = try await world.node()
    // An entry is as old as the clock of its server says: after an hour, it is stale.
    #expect(try await late.ask("get k") == (step == Self.hour ? "2" : "1"))
    #expect(try world.origin.fetchCount == (step == Self.hour ? 2 : 1))
    while try await node.ask("clear") != "cleared" {}
    let count = stopped.answerCount
    try stopped.send("get k")
    stopped.goOn()
    #expect(await stopped.nextAnswer(after: count) == "2")
    for node in [node, late] { #expect(try await node.ask("get k") == "2") }
  }

  @Test(arguments: [hour, -hour])
  func `processes take over the fetch of a killed one over a new server with another clock`(
    step: Int
  ) async throws {
    let world = try await World(ahead: step)
    let doomed = try await world.node(fetchLease: 500)
    try world.origin.hold(true)
    try doomed.send("get k")
    await doomed.answers("fetching")
    try world.origin.hold(false)
    doomed.die()
    try await world.failOver()
    let heir = try await world.node(fetchLease: 500)
    // Otherwise, this would wait an hour.
    #expect(try await heir.ask("get k") == "1")
    #expect(try world.origin.fetchCount == 2)
  }

  @Test(arguments: [hour, -hour])
  func `processes fetch once, although the server is replaced during the fetch`(
    step: Int
  ) async throws {
    let world = try await World(ahead: step)
    let holder = try await world.node(fetchLease: 3_000)
    try world.origin.hold(true)
    try holder.send("get k")
    await holder.answers("fetching")
    try world.origin.hold(false)
    let monitor = try await RedisMonitor(world.servers.second)
    try await world.failOver()
    let other = try await world.node(fetchLease: 3_000)
    try other.send("get k")
    await monitor.looks(for: "k", by: 1)
    // Longer than a lease: both processes send four heartbeats within it.
    await monitor.commands(12, with: "\"HELLO\"")
    try holder.send("admit")
    for node in [holder, other] { await node.answers("1") }
    #expect(try world.origin.fetchCount == 1)
  }
}
