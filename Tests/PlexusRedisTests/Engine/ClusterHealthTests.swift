import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `The health of a cluster` {
  @Test func `a master that is down is in the health until it answers again`() async throws {
    let cluster = try await RedisCluster()
    let origin = Guarded("1")
    let node = try await ClusterNode(cluster.address, origin, ClusterNode.soon)
    #expect(try await node.request("k") == "1")
    let owner = try cluster.owner(of: "values")
    cluster.kill(owner)
    for await health in node.engine.health() {
      guard case .isolated(let reason) = health else { continue }
      #expect(!reason.isEmpty)
      break
    }
    // Requests do not need the master.
    origin.withLock { $0 = "2" }
    #expect(try await node.request("other") == "2")
    try await cluster.restart(owner)
    await node.engine.becomesConnected()
    await node.clear()
    try await [node].expectSharing("2", at: cluster, ClusterNode.soon)
    try await [node].close()
  }

  @Test(.guarantee(.clusterFailuresAreInTheHealth))
  func `a cluster that serves nothing is in the health until it serves again`() async throws {
    let cluster = try await RedisCluster(options: ["--cluster-node-timeout", "1000"])
    let node = try await ClusterNode(cluster.address, Guarded("1"), ClusterNode.soon)
    #expect(try await node.request("k") == "1")
    let other = (try cluster.owner(of: "values") + 1) % 3
    cluster.kill(other)
    for await health in node.engine.health() {
      guard case .degraded(let reason) = health else { continue }
      #expect(reason.contains("CLUSTERDOWN"))
      break
    }
    // Afterwards, no command of this kind follows.
    #expect(try await node.request("other") == "1")
    try await cluster.restart(other)
    await node.engine.becomesConnected()
    try await [node].close()
  }

  @Test(.guarantee(.clusterFailuresAreInTheHealth))
  func `a slot without a master is in the health until it has one`() async throws {
    let cluster = try await RedisCluster(options: ClusterNode.partial)
    let slot = try cluster.slot(of: "values")
    // A server can have heard of it from another one.
    for index in 0..<3 {
      _ = try RedisShell.run("CLUSTER DELSLOTS \(slot)", on: cluster.server(index))
    }
    var options = RedisOptions()
    ClusterNode.soon(&options)
    let engine = try RedisEngine(cluster.address, options: options)
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    for await health in engine.health() {
      guard case .isolated(let reason) = health else { continue }
      #expect(reason.contains("no master has the slot \(slot)"))
      break
    }
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .milliseconds(100))
    }
    #expect(error?.description.contains("no master has the slot \(slot)") == true)
    _ = try RedisShell.run("CLUSTER ADDSLOTS \(slot)", on: cluster.server(0))
    try await engine.connect(within: .seconds(600))
    withExtendedLifetime(cacher) {}
    try await engine.close()
  }

  /// A server that knows a map, whose ranges are texts of the protocol.
  private func server(
    _ ranges: @escaping @Sendable () -> String?,
    hello: @escaping @Sendable () -> String = { AnsweringServer.clusterHello }
  ) throws -> AnsweringServer {
    try AnsweringServer { command in
      switch command.words[0] {
      case "HELLO": hello()
      case "CLUSTER": ranges()
      case "EVALSHA", "GET": "_\r\n"
      default: command.usual
      }
    }
  }

  /// A map with one range, whose master is at a port.
  private static func map(_ first: Int, _ last: Int, at port: UInt16) -> String {
    "*1\r\n*3\r\n:\(first)\r\n:\(last)\r\n*2\r\n+127.0.0.1\r\n:\(port)\r\n"
  }

  @Test(.guarantee(.clusterFailuresAreInTheHealth))
  func `connecting returns as soon as a master that was late answers`() async throws {
    let cluster = try await RedisCluster()
    let server = cluster.server(try cluster.owner(of: "values"))
    let engine = try RedisEngine(cluster.address)
    try await engine.connect(within: .seconds(600))
    server.suspend()
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    async let connected: Void = engine.connect(within: .seconds(600))
    await Failover.poll { engine.status.errors[.timedOut, default: 0] > 0 }
    server.resume()
    try await connected
    #expect(try await cacher.entry(forKey: "k") == nil)
    try await engine.close()
  }

  @Test(.guarantee(.clusterFailuresAreInTheHealth))
  func `a map that could not be read is read again, also without caches`() async throws {
    let isBusy = Guarded(false)
    let seed = try server {
      isBusy.withLock { $0 }
        ? "-BUSY Redis is busy running a script.\r\n" : Self.map(0, 16_383, at: 1)
    }
    let engine = try RedisEngine(.cluster([seed.address]))
    await engine.becomesConnected()
    isBusy.withLock { $0 = true }
    // The connection ends, and the next one asks.
    seed.send("nonsense\r\n")
    for await health in engine.health() {
      if case .isolated(let reason) = health, reason.contains("BUSY") { break }
    }
    isBusy.withLock { $0 = false }
    await engine.becomesConnected()
    #expect(seed.commands.entries.count { $0.words[0] == "CLUSTER" } > 2)
    try await engine.close()
  }

  @Test(.guarantee(.movedSlotsAreFollowed))
  func `another server is asked about a slot that is not in the map of the first one`() async throws
  {
    // That of the space.
    let slot = 9411
    let port = Guarded<UInt16>(0)
    let second = try server { Self.map(0, 16_383, at: port.withLock { $0 }) }
    guard case .tcp(_, let number) = second.address else { return }
    port.withLock { $0 = number }
    let first = try server { Self.map(slot + 1, 16_383, at: number) }
    let engine = try RedisEngine(.cluster([first.address, second.address]))
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    try await engine.connect(within: .seconds(600))
    #expect(second.commands.entries.contains { $0.words[0] == "CLUSTER" })
    withExtendedLifetime(cacher) {}
    try? await engine.close()
  }

  @Test(.guarantee(.clusterFailuresAreInTheHealth))
  func `connecting waits for the masters of all spaces, whose refusal is an error`() async throws {
    let master = try server {
      nil
    } hello: {
      "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
    }
    guard case .tcp(_, let port) = master.address else { return }
    let seed = try server { Self.map(0, 16_383, at: port) }
    let engine = try RedisEngine(.cluster([seed.address]))
    // Without a space, any server suffices.
    try await engine.connect(within: .seconds(600))
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .seconds(600))
    }
    #expect(error?.kind == .authentication)
    withExtendedLifetime(cacher) {}
    try? await engine.close()
  }

  @Test(.guarantee(.clusterFailuresAreInTheHealth))
  func `a server that refuses the password does not matter beside one that accepts it`()
    async throws
  {
    let port = Guarded<UInt16>(0)
    let good = try server { Self.map(0, 16_383, at: port.withLock { $0 }) }
    guard case .tcp(_, let number) = good.address else { return }
    port.withLock { $0 = number }
    let refusing = try server {
      nil
    } hello: {
      "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
    }
    for servers in [[refusing, good], [good, refusing]] {
      let engine = try RedisEngine(.cluster(servers.map(\.address)))
      try await engine.connect(within: .seconds(600))
      try await engine.close()
    }
    let engine = try RedisEngine(.cluster([refusing.address, refusing.address]))
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .seconds(600))
    }
    #expect(error?.kind == .authentication)
    try await engine.close()
  }

  @Test(.guarantee(.clusterFailuresAreInTheHealth))
  func `a master that hangs does not hide that another one refuses the password`() async throws {
    let ports = Guarded<[UInt16]>([])
    let masters = [
      try AnsweringServer { $0.words[0] == "HELLO" ? AnsweringServer.clusterHello : nil },
      try server {
        nil
      } hello: {
        "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
      },
    ]
    for case .tcp(_, let port) in masters.map(\.address) { ports.withLock { $0.append(port) } }
    let halves = ports.withLock { ports in
      [(0, 8_191), (8_192, 16_383)].enumerated().map { index, slots in
        Self.map(slots.0, slots.1, at: ports[index]).dropFirst(3)
      }
    }
    let seed = try server { "*2\r\n" + halves.joined() }
    let engine = try RedisEngine(
      .cluster([seed.address]),
      options: RedisOptions(commandTimeout: .seconds(20))
    )
    let cachers = (0..<24).map { engine.cacher(String.self, space: "space\($0)", schema: "1") }
    let stopwatch = Stopwatch()
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .seconds(600))
    }
    #expect(error?.kind == .authentication)
    #expect(stopwatch.elapsed < .seconds(18))
    withExtendedLifetime(cachers) {}
    try? await engine.close()
  }

  @Test(.guarantee(.idleProcessesSendOneCommand))
  func `a slot has one heartbeat however many schemas there are`() async throws {
    let cluster = try await RedisCluster(masters: 1)
    var options = RedisOptions(commandTimeout: .seconds(60))
    options.nearLease = .seconds(1)
    options.fetchLease = .seconds(1)
    let engine = try RedisEngine(cluster.address, options: options)
    let cachers = (0..<20).map { engine.cacher(String.self, space: "values", schema: "\($0)") }
    for cacher in cachers { #expect(try await cacher.entry(forKey: "k") == nil) }
    let questions = { @Sendable () throws -> Int in
      let info = try RedisShell.reply("INFO commandstats", on: cluster.server(0))
      let calls = info.split(separator: "cmdstat_get:calls=").dropFirst().first
      return Int(calls?.prefix { $0.isNumber } ?? "") ?? 0
    }
    // Four heartbeats a second, and one at once for each doubt of the first caches.
    let (begin, before) = (ContinuousClock.now, try questions())
    await Failover.poll { (try? questions()).map { $0 - before >= 14 } ?? false }
    #expect(begin.duration(to: .now) >= .seconds(2))
    // It confirms all of them.
    for cacher in cachers { await Failover.poll { cacher.trust.holds } }
    try await engine.close()
  }

  @Test(.guarantee(.clustersHaveOneConnectionPerMaster))
  func `a master that no cache uses can be down`() async throws {
    let cluster = try await RedisCluster(options: ClusterNode.partial)
    let node = try await ClusterNode(cluster.address, Guarded("1"), ClusterNode.soon)
    #expect(try await node.request("k") == "1")
    let states = Recorder(node.engine.health())
    _ = await states.first(1)
    let owner = try cluster.owner(of: "values")
    cluster.kill((owner + 1) % 3)
    let other = try await ClusterNode(cluster.address, Guarded("2"), ClusterNode.soon)
    #expect(try await other.request("k") == "1")
    await node.clear()
    #expect(try await other.request("k") == "2")
    #expect(states.elements == [.connected])
    try await [node, other].close()
  }

  @Test func `closing in the middle of a move takes no longer than its commands`() async throws {
    let cluster = try await RedisCluster()
    let origin = Guarded("1")
    let node = try await ClusterNode(cluster.address, origin, ClusterNode.soon)
    try await [node].expectServing("1")
    let target = (try cluster.owner(of: "values") + 1) % 3
    let move = try cluster.beginMove(of: "values", to: target)
    try cluster.migrateKeys(move, limit: cluster.keyCounts(move)[0] / 2)
    // It can be owed to the servers.
    _ = try? await node.maps["values"]?.clear("k1")
    let stopwatch = Stopwatch()
    try? await node.engine.close()
    #expect(stopwatch.elapsed < .seconds(30))
    try await cluster.finishMove(move)
    // The others do not wait for the process that has ended.
    let other = try await ClusterNode(cluster.address, origin, ClusterNode.soon)
    origin.withLock { $0 = "2" }
    await other.clear()
    #expect(try await other.request("k0") == "2")
    try await [other].close()
  }
}
