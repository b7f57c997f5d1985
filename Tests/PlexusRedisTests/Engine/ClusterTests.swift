import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Caches over a cluster` {
  /// A process with a cache in each of several spaces, as far as the servers can tell.
  private struct Node: Sendable {
    let engine: RedisEngine
    let repository = MuxRepository()
    let maps: [String: MultiplexerMap<String, String>]
    let fetches = Log<String>()

    /// Commands have a minute unless the options are changed: tests do not depend on how busy the machine is.
    init(
      _ address: RedisAddress,
      _ origin: Guarded<String>,
      spaces: [String] = ["values"],
      _ change: (inout RedisOptions) -> Void = { _ in }
    ) async throws {
      var options = RedisOptions()
      options.commandTimeout = .seconds(60)
      options.nearLease = .seconds(60)
      options.fetchLease = .seconds(60)
      change(&options)
      engine = try RedisEngine(address, options: options)
      var policy = CachePolicy()
      policy.storageTimeout = options.commandTimeout + .seconds(60)
      let fetches = fetches
      var maps: [String: MultiplexerMap<String, String>] = [:]
      for space in spaces {
        let cacher = engine.cacher(String.self, space: space, schema: "1")
        let map = MultiplexerMap<String, String>(id: space, policy: policy, cacher: cacher) { key in
          fetches.append("\(space)/\(key)")
          return origin.withLock { $0 }
        }
        map.register(in: repository)
        maps[space] = map
      }
      self.maps = maps
      await engine.becomesConnected()
    }

    func request(_ key: String, in space: String = "values") async throws -> String {
      let map = try #require(maps[space])
      return try await map.request(key)
    }

    /// Clears everything in all processes, as often as it takes.
    func clear() async {
      while (try? await repository.clearAll(.everywhere)) == nil { await Task.detached {}.value }
    }
  }

  private static let keys = (0..<12).map { "k\($0)" }

  /// The option of servers that serve their slots although those of another one are not served.
  private static let partial = ["--cluster-require-full-coverage", "no"]

  /// Short times, after which a process notices that a server has changed.
  private static func soon(_ options: inout RedisOptions) {
    // While a slot is open, servers refuse scripts of several keys: each request can take this long.
    options.commandTimeout = .milliseconds(250)
    options.nearLease = .seconds(1)
    options.fetchLease = .seconds(1)
  }

  /// As ``soon(_:)``, with clears that a replica has.
  private static func replicated(_ options: inout RedisOptions) {
    soon(&options)
    options.commandTimeout = .seconds(2)
    options.clearReplicas = 1
  }

  private func close(_ nodes: [Node]) async throws {
    for node in nodes { try await node.engine.close() }
  }

  /// Starts two processes with the same options.
  private func makeNodes(
    _ cluster: RedisCluster,
    _ origin: Guarded<String>,
    _ change: (inout RedisOptions) -> Void
  ) async throws -> [Node] {
    [
      try await Node(cluster.address, origin, change),
      try await Node(cluster.address, origin, change),
    ]
  }

  /// Expects that processes serve a value for each key.
  private func expect(
    _ value: String,
    from nodes: [Node],
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    for node in nodes {
      for key in Self.keys {
        #expect(try await node.request(key) == value, sourceLocation: sourceLocation)
      }
    }
  }

  /// Expects that a process serves what others have stored since the last clear, and fetches nothing.
  private func expectSharing(
    _ value: String,
    of nodes: [Node],
    at cluster: RedisCluster,
    _ change: (inout RedisOptions) -> Void
  ) async throws {
    try await expect(value, from: nodes)
    while true {
      let other = try await Node(cluster.address, Guarded("of the other process"), change)
      var values: Set<String> = []
      for key in Self.keys { values.insert(try await other.request(key)) }
      #expect(values.isSubset(of: [value, "of the other process"]))
      let isShared = other.fetches.count == 0
      try await other.engine.close()
      guard !isShared else { return }
      // A process that was cut off can have fetched for its own callers only.
      await nodes[0].clear()
      try await expect(value, from: [nodes[0]])
    }
  }

  // MARK: - Slots

  @Test func `spaces of all masters share their fetches, and clears reach all copies`()
    async throws
  {
    let cluster = try await RedisCluster()
    let origin = Guarded("1")
    let spaces = (0..<30).map { "space\($0)" }
    #expect(try Set(spaces.map { try cluster.owner(of: $0) }).count == 3)
    let first = try await Node(cluster.address, origin, spaces: spaces)
    let second = try await Node(cluster.address, origin, spaces: spaces)
    for space in spaces {
      async let value = first.request("k", in: space)
      let values = [try await second.request("k", in: space), try await value]
      #expect(values == ["1", "1"])
    }
    #expect(first.fetches.count + second.fetches.count == spaces.count)
    origin.withLock { $0 = "2" }
    try await first.repository.clearAll(.everywhere)
    for node in [second, first] {
      for space in spaces { #expect(try await node.request("k", in: space) == "2") }
    }
    #expect(first.fetches.count + second.fetches.count == 2 * spaces.count)
    origin.withLock { $0 = "3" }
    for space in spaces { try await first.maps[space]?.clear("k") }
    // The servers have told the other process, which can learn it a little later.
    for space in spaces {
      while try await second.request("k", in: space) != "3" { await Task.detached {}.value }
    }
    try await close([first, second])
  }

  @Test(.guarantee(.clustersHaveOneConnectionPerMaster))
  func `a process has one connection to each master that its caches use`() async throws {
    let cluster = try await RedisCluster()
    let origin = Guarded("1")
    let (first, second) = (
      try cluster.names(12, at: 0, prefix: "cache"), try cluster.names(12, at: 1, prefix: "cache")
    )
    for count in [1, 12] {
      let spaces = Array(first.prefix(count) + second.prefix(count))
      let node = try await Node(cluster.address, origin, spaces: spaces)
      for space in spaces { #expect(try await node.request("k", in: space) == "1") }
      #expect(cluster.connectionCounts(named: "plexus") == [1, 1, 0])
      #expect(cluster.connectionCounts(named: "plexus-cluster").reduce(0, +) <= 1)
      #expect(cluster.connectionCounts(named: "plexus-events") == [0, 0, 0])
      try await node.engine.close()
      await Failover.poll { cluster.connectionCounts(named: "plexus") == [0, 0, 0] }
      await Failover.poll { cluster.connectionCounts(named: "plexus-cluster") == [0, 0, 0] }
    }
  }

  @Test(.guarantee(.clustersHaveOneConnectionPerMaster))
  func `an engine that is released without being closed leaves no connection`() async throws {
    let cluster = try await RedisCluster()
    var node: Node? = try await Node(cluster.address, Guarded("1"))
    #expect(try await node?.request("k") == "1")
    #expect(cluster.connectionCounts(named: "plexus-cluster").reduce(0, +) == 1)
    node = nil
    await Failover.poll {
      ["plexus-cluster", "plexus"].allSatisfy { name in
        cluster.connectionCounts(named: name).allSatisfy { $0 == 0 }
      }
    }
  }

  @Test(.guarantee(.movedSlotsAreFollowed))
  func `a slot that has moved is followed, and later clears reach all copies`()
    async throws
  {
    let cluster = try await RedisCluster()
    let origin = Guarded("1")
    let nodes = try await makeNodes(cluster, origin, Self.soon)
    for node in nodes { #expect(try await node.request("k") == "1") }
    let target = (try cluster.owner(of: "values") + 1) % 3
    try await cluster.moveSlot(of: "values", to: target)
    origin.withLock { $0 = "2" }
    await nodes[0].clear()
    for node in nodes { #expect(try await node.request("k") == "2") }
    await Failover.poll { cluster.connectionCounts(named: "plexus")[target] == 2 }
    try await expectSharing("2", of: nodes, at: cluster, Self.soon)
    // Connections to the former master end once nothing has used them for a while.
    await Failover.poll {
      cluster.connectionCounts(named: "plexus").reduce(0, +) == 2
        && cluster.connectionCounts(named: "plexus")[target] == 2
    }
    try await close(nodes)
  }

  @Test(.guarantee(.movedSlotsAreFollowed))
  func `a process whose copies were idle during a move serves nothing older than a clear`()
    async throws
  {
    let cluster = try await RedisCluster()
    let origin = Guarded("1")
    func slowly(_ options: inout RedisOptions) {
      options.commandTimeout = .seconds(2)
      // The next heartbeat comes after the clear.
      options.nearLease = .seconds(20)
    }
    let idle = try await Node(cluster.address, origin, slowly)
    let other = try await Node(cluster.address, origin, slowly)
    try await expect("1", from: [idle])
    try await cluster.moveSlot(of: "values", to: (try cluster.owner(of: "values") + 1) % 3)
    origin.withLock { $0 = "2" }
    await other.clear()
    try await expect("2", from: [idle])
    try await close([idle, other])
  }

  @Test(.guarantee(.movedSlotsAreFollowed), arguments: [false, true])
  func `a slot that stands half moved serves nothing older than a clear, and heals`(
    isCanceled: Bool
  ) async throws {
    let cluster = try await RedisCluster()
    let origin = Guarded("1")
    let nodes = try await makeNodes(cluster, origin, Self.soon)
    try await expect("1", from: nodes)
    let target = (try cluster.owner(of: "values") + 1) % 3
    let move = try cluster.beginMove(of: "values", to: target)
    try cluster.migrateKeys(move, limit: cluster.keyCounts(move)[0] / 2)
    #expect(cluster.keyCounts(move).allSatisfy { $0 > 0 })
    try await expect("1", from: nodes)
    origin.withLock { $0 = "2" }
    let isCleared = (try? await nodes[0].repository.clearAll(.everywhere)) != nil
    for node in nodes {
      // New keys are at the target.
      for key in Self.keys + ["new"] {
        let value = try await node.request(key)
        #expect(value == "2" || !isCleared && value == "1", "\(key): \(value)")
      }
    }
    if isCanceled { try cluster.cancelMove(move) } else { try await cluster.finishMove(move) }
    await nodes[0].clear()
    try await expect("2", from: nodes)
    origin.withLock { $0 = "3" }
    await nodes[1].clear()
    try await expectSharing("3", of: nodes, at: cluster, Self.soon)
    await Failover.poll { nodes.allSatisfy { $0.engine.status.owedRemovals == 0 } }
    try await close(nodes)
  }

  @Test(.guarantee(.movedSlotsAreFollowed))
  func `a slot that moves back and forth under load serves nothing older than a clear`()
    async throws
  {
    let cluster = try await RedisCluster()
    let origin = Guarded("0")
    let nodes = try await makeNodes(cluster, origin, Self.soon)
    // The version that each request has to return at least.
    let floor = Guarded(0)
    let isDone = Guarded(false)
    // The clears wait for further requests.
    let clearing = Guarded(2)
    let (requests, clears) = (Log<Bool>(), Log<Int>())
    let broken = Log<String>()
    try await withThrowingTaskGroup { group in
      defer { isDone.withLock { $0 = true } }
      for node in nodes {
        for caller in 0..<2 {
          group.addTask {
            var random = SeededRandom(seed: UInt64(caller))
            while clearing.withLock({ $0 > 0 }) {
              let least = floor.withLock { $0 }
              let key = Self.keys[Int(random.next() % UInt64(Self.keys.count))]
              let value = try await node.request(key)
              if (Int(value) ?? -1) < least { broken.append("\(key): \(value) after \(least)") }
              requests.append(true)
              await Task.detached {}.value
            }
          }
        }
        group.addTask {
          defer { clearing.withLock { $0 -= 1 } }
          while !isDone.withLock(\.self) {
            let version = origin.withLock { origin in
              origin = "\((Int(origin) ?? 0) + 1)"
              return Int(origin) ?? 0
            }
            guard (try? await node.repository.clearAll(.everywhere)) != nil else { continue }
            floor.withLock { $0 = max($0, version) }
            clears.append(version)
            await requests.first(requests.count + 20)
          }
        }
      }
      for _ in 0..<4 {
        let target = (try cluster.owner(of: "values") + 1) % 3
        let move = try cluster.beginMove(of: "values", to: target)
        try cluster.migrateKeys(move, limit: cluster.keyCounts(move)[0] / 2)
        await requests.first(requests.count + 20)
        try await cluster.finishMove(move)
        await clears.first(clears.count + 3)
      }
      isDone.withLock { $0 = true }
      try await group.waitForAll()
    }
    #expect(broken.entries.isEmpty, "\(broken.count): \(broken.entries.prefix(5))")
    origin.withLock { $0 = "end" }
    await nodes[0].clear()
    try await expectSharing("end", of: nodes, at: cluster, Self.soon)
    try await close(nodes)
  }

  @Test(.guarantee(.movedSlotsAreFollowed))
  func `a master that is added serves the slots that it gets`() async throws {
    let cluster = try await RedisCluster()
    let origin = Guarded("1")
    let nodes = try await makeNodes(cluster, origin, Self.soon)
    for node in nodes { #expect(try await node.request("k") == "1") }
    let master = try await cluster.addMaster()
    #expect(cluster.connectionCounts(named: "plexus")[master] == 0)
    try await cluster.moveSlot(of: "values", to: master)
    origin.withLock { $0 = "2" }
    await nodes[0].clear()
    try await expectSharing("2", of: nodes, at: cluster, Self.soon)
    #expect(cluster.connectionCounts(named: "plexus")[master] == 2)
    try await close(nodes)
  }

  // MARK: - Masters

  private enum Change: CaseIterable, Sendable {
    case promotion, crash
  }

  @Test(.guarantee(.movedSlotsAreFollowed), arguments: Change.allCases)
  private func `a new master is followed, and serves nothing older than a clear`(
    change: Change
  ) async throws {
    let cluster = try await RedisCluster(replicas: 1)
    let origin = Guarded("1")
    let nodes = try await makeNodes(cluster, origin, Self.replicated)
    try await expect("1", from: nodes)
    let owner = try cluster.owner(of: "values")
    try await cluster.replicate("values")
    origin.withLock { $0 = "2" }
    await nodes[0].clear()
    switch change {
    case .promotion: try await cluster.promoteReplica(of: owner)
    case .crash: await cluster.crash(owner)
    }
    let begin = ContinuousClock.now
    try await expect("2", from: nodes)
    // A clear needs a replica again.
    if change == .crash { try await cluster.restart(owner) }
    origin.withLock { $0 = "3" }
    await nodes[0].clear()
    try await expect("3", from: nodes)
    let duration = begin.duration(to: .now)
    print("after a \(change) in a cluster: \(duration)")
    #expect(duration < .seconds(60))
    #expect(try cluster.owner(of: "values") != owner)
    try await expectSharing("3", of: nodes, at: cluster, Self.replicated)
    try await close(nodes)
  }

  @Test(.guarantee(.movedSlotsAreFollowed))
  func `a replica that is behind delays no clear at another master`() async throws {
    let cluster = try await RedisCluster(replicas: 1)
    let spaces = [
      try cluster.names(1, at: 0, prefix: "behind")[0], try cluster.names(1, at: 1)[0],
    ]
    let node = try await Node(cluster.address, Guarded("1"), spaces: spaces) { options in
      options.commandTimeout = .seconds(600)
      options.clearReplicas = 1
    }
    for space in spaces { #expect(try await node.request("k", in: space) == "1") }
    cluster.server(3).suspend()
    let isOver = Guarded(false)
    let behind = Task {
      defer { isOver.withLock { $0 = true } }
      try await node.maps[spaces[0]]?.clear("k")
    }
    await Failover.poll {
      (try? RedisShell.reply("INFO clients", on: cluster.server(0)))?
        .contains("blocked_clients:1") == true
    }
    for _ in 0..<10 { try await node.maps[spaces[1]]?.clear("k") }
    // It is waited for still.
    #expect(!isOver.withLock { $0 })
    cluster.server(3).resume()
    _ = await behind.result
    try await close([node])
  }

  @Test(.guarantee(.movedSlotsAreFollowed))
  func `changes after a promotion reach copies that only the former master knows of`()
    async throws
  {
    let cluster = try await RedisCluster(replicas: 1)
    let origin = Guarded("1")
    let nodes = try await makeNodes(cluster, origin, Self.soon)
    try await expect("1", from: nodes)
    let map = try #require(nodes[1].maps["values"])
    let shown = Log<String>()
    let showing = Task {
      for await state in map["k1"].subscribe(refetching: .whenStale) {
        if let value = state.value { shown.append(value) }
      }
    }
    await shown.contains("1")
    let former = try cluster.owner(of: "values")
    let master = try await cluster.promoteReplica(of: former)
    await Failover.poll { cluster.connectionCounts(named: "plexus")[master] == nodes.count }
    // It is a replica now, which announces what it hears from the master.
    cluster.kill(former)
    origin.withLock { $0 = "2" }
    for key in ["k0", "k1"] { try await nodes[0].maps["values"]?.clear(key) }
    while try await nodes[1].request("k0") != "2" { await Task.detached {}.value }
    await shown.contains("2")
    showing.cancel()
    try await close(nodes)
  }

  @Test(.guarantee(.movedSlotsAreFollowed))
  func `a promotion under load serves nothing older than a clear`() async throws {
    let cluster = try await RedisCluster(replicas: 1)
    let origin = Guarded("0")
    let nodes = try await makeNodes(cluster, origin, Self.replicated)
    let isDone = Guarded(false)
    let (clears, broken) = (Log<Int>(), Log<String>())
    try await withThrowingTaskGroup { group in
      defer { isDone.withLock { $0 = true } }
      group.addTask {
        var version = 0
        while !isDone.withLock(\.self) {
          version += 1
          origin.withLock { $0 = "\(version)" }
          guard (try? await nodes[0].repository.clearAll(.everywhere)) != nil else { continue }
          clears.append(version)
          for node in nodes {
            for key in Self.keys.prefix(4) {
              let value = try await node.request(key)
              if value != "\(version)" { broken.append("\(key): \(value) after \(version)") }
            }
          }
        }
      }
      for _ in 0..<2 {
        await clears.first(clears.count + 5)
        try await cluster.promoteReplica(of: try cluster.owner(of: "values"))
      }
      await clears.first(clears.count + 5)
      isDone.withLock { $0 = true }
      try await group.waitForAll()
    }
    #expect(broken.entries.isEmpty, "\(broken.count): \(broken.entries.prefix(5))")
    try await close(nodes)
  }

  @Test func `a master that is down is in the health until it answers again`() async throws {
    let cluster = try await RedisCluster()
    let origin = Guarded("1")
    let node = try await Node(cluster.address, origin, Self.soon)
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
    try await expectSharing("2", of: [node], at: cluster, Self.soon)
    try await close([node])
  }

  @Test(.guarantee(.clusterFailuresAreInTheHealth))
  func `a cluster that serves nothing is in the health until it serves again`() async throws {
    let cluster = try await RedisCluster(options: ["--cluster-node-timeout", "1000"])
    let node = try await Node(cluster.address, Guarded("1"), Self.soon)
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
    try await close([node])
  }

  @Test(.guarantee(.clusterFailuresAreInTheHealth))
  func `a slot without a master is in the health until it has one`() async throws {
    let cluster = try await RedisCluster(options: Self.partial)
    let slot = try cluster.slot(of: "values")
    // A server can have heard of it from another one.
    for index in 0..<3 {
      _ = try RedisShell.run("CLUSTER DELSLOTS \(slot)", on: cluster.server(index))
    }
    var options = RedisOptions()
    Self.soon(&options)
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
    let cluster = try await RedisCluster(options: Self.partial)
    let node = try await Node(cluster.address, Guarded("1"), Self.soon)
    #expect(try await node.request("k") == "1")
    let states = Recorder(node.engine.health())
    _ = await states.first(1)
    let owner = try cluster.owner(of: "values")
    cluster.kill((owner + 1) % 3)
    let other = try await Node(cluster.address, Guarded("2"), Self.soon)
    #expect(try await other.request("k") == "1")
    await node.clear()
    #expect(try await other.request("k") == "2")
    #expect(states.elements == [.connected])
    try await close([node, other])
  }

  @Test func `closing in the middle of a move takes no longer than its commands`() async throws {
    let cluster = try await RedisCluster()
    let origin = Guarded("1")
    let node = try await Node(cluster.address, origin, Self.soon)
    try await expect("1", from: [node])
    let target = (try cluster.owner(of: "values") + 1) % 3
    let move = try cluster.beginMove(of: "values", to: target)
    try cluster.migrateKeys(move, limit: cluster.keyCounts(move)[0] / 2)
    // It can be owed to the servers.
    _ = try? await node.maps["values"]?.clear("k1")
    let begin = ContinuousClock.now
    try? await node.engine.close()
    #expect(begin.duration(to: .now) < .seconds(30))
    try await cluster.finishMove(move)
    // The others do not wait for the process that has ended.
    let other = try await Node(cluster.address, origin, Self.soon)
    origin.withLock { $0 = "2" }
    await other.clear()
    #expect(try await other.request("k0") == "2")
    try await close([other])
  }

  // MARK: - Addresses

  @Test func `the address of a server that is away does not matter beside that of another one`()
    async throws
  {
    let cluster = try await RedisCluster()
    // It is bound, and does not listen.
    let closed = try LoopbackSocket()
    let away = RedisAddress.tcp(host: "127.0.0.1", port: closed.port)
    let origin = Guarded("1")
    for seeds in [[away, cluster.address(of: 1)], [cluster.address(of: 2), away]] {
      let node = try await Node(.cluster(seeds), origin)
      #expect(try await node.request("k") == "1")
      try await node.engine.close()
    }
  }

  @Test func `a cluster that starts later is reached then`() async throws {
    let cluster = try await RedisCluster(masters: 1)
    cluster.kill(0)
    let closed = try LoopbackSocket()
    let away = RedisAddress.tcp(host: "127.0.0.1", port: closed.port)
    let options = RedisOptions(commandTimeout: .seconds(2))
    let engine = try RedisEngine(.cluster([away, cluster.address(of: 0)]), options: options)
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .milliseconds(200))
    }
    #expect(error?.kind == .unreachable)
    try await cluster.restart(0)
    try await engine.connect(within: .seconds(60))
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    let entry = CacheEntry(value: "1", storedAt: .zero)
    while (try? await cacher.store(["k": entry])) == nil { await Task.detached {}.value }
    #expect(try await cacher.entry(forKey: "k")?.value == "1")
    try await engine.close()
  }

  @Test func `an address of the cluster whose server has left it is replaced by the others`()
    async throws
  {
    let cluster = try await RedisCluster(options: Self.partial)
    let owner = try cluster.owner(of: "values")
    let (seed, target) = ((owner + 1) % 3, (owner + 2) % 3)
    // The only address that the process has is not that of the master of its cache.
    let node = try await Node(.cluster([cluster.address(of: seed)]), Guarded("1"), Self.soon)
    #expect(try await node.request("k") == "1")
    cluster.kill(seed)
    try await cluster.moveSlot(of: "values", to: target)
    await node.clear()
    try await expectSharing("1", of: [node], at: cluster, Self.soon)
    try await close([node])
  }

  @Test(.guarantee(.clusterErrorsSayWhatToDo))
  func `a standalone server is no cluster, which is an error at once`() async throws {
    let port = try LoopbackSocket().port
    let server = try RedisServer("--port", "\(port)", "--bind", "127.0.0.1")
    await RedisShell.waitUntilReady(server)
    let engine = try RedisEngine(.cluster([.tcp(host: "127.0.0.1", port: port)]))
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .seconds(600))
    }
    #expect(error?.kind == .configuration || error?.kind == .cluster)
    try await engine.close()
  }

  @Test(.guarantee(.clusterErrorsSayWhatToDo))
  func `a plain address of a node of a cluster is an error at once that says what to do`()
    async throws
  {
    let cluster = try await RedisCluster(masters: 1)
    let engine = try RedisEngine(cluster.address(of: 0))
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .seconds(600))
    }
    #expect(error?.kind == .cluster)
    #expect(error?.description.contains(".cluster") == true, "\(error?.description ?? "")")
    try await engine.close()
  }

  @Test(.guarantee(.clusterErrorsSayWhatToDo))
  func `an address or a database that a cluster cannot have is an error of the engine`() {
    let server = RedisAddress.tcp(host: "127.0.0.1", port: 1)
    let wrong: [(address: RedisAddress, database: Int)] = [
      (.cluster([]), 0), (.cluster([server]), 1), (.cluster([.unix(path: "/nowhere")]), 0),
      (.cluster([server, .unix(path: "/nowhere")]), 0), (.cluster([.cluster([server])]), 0),
      (.cluster([.sentinel(name: "main", [server])]), 0),
      (.sentinel(name: "main", [.cluster([server])]), 0),
    ]
    for (address, database) in wrong {
      let error = #expect(throws: RedisEngineError.self, "\(address)") {
        try RedisEngine(address, options: RedisOptions(database: database))
      }
      #expect(error?.kind == .configuration, "\(address)")
    }
  }

  /// Expects that an engine that knows one server uses all masters, and follows a slot to another one.
  private func expectAllServersInUse(of cluster: RedisCluster) async throws {
    let origin = Guarded("1")
    let spaces = (0..<12).map { "space\($0)" }
    let seeds = RedisAddress.cluster([cluster.address(of: 0)])
    let node = try await Node(seeds, origin, spaces: spaces, Self.soon)
    for space in spaces { #expect(try await node.request("k", in: space) == "1") }
    let target = (try cluster.owner(of: "space0") + 1) % 3
    try await cluster.moveSlot(of: "space0", to: target)
    origin.withLock { $0 = "2" }
    await node.clear()
    for space in spaces { #expect(try await node.request("k", in: space) == "2") }
    try await close([node])
  }

  @Test func `servers without an endpoint are reached at the host of the server that was asked`()
    async throws
  {
    let options = ["--cluster-preferred-endpoint-type", "unknown-endpoint"]
    let cluster = try await RedisCluster(options: options)
    try await expectAllServersInUse(of: cluster)
  }

  @Test(.guarantee(.clusterErrorsSayWhatToDo))
  func `a right that is missing for finding the slots is named`() async throws {
    let cluster = try await RedisCluster()
    try cluster.performEverywhere("ACL SETUSER app on >secret ~* &* +@all -cluster")
    var options = RedisOptions(commandTimeout: .seconds(60))
    options.credentials = { RedisCredentials(user: "app", password: "secret") }
    let engine = try RedisEngine(cluster.address, options: options)
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .seconds(5))
    }
    #expect(error?.kind == .permission)
    #expect(error?.description.contains("+cluster|slots") == true, "\(error?.description ?? "")")
    try cluster.performEverywhere("ACL SETUSER app +cluster|slots")
    await engine.becomesConnected()
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    try await cacher.store(["k": CacheEntry(value: "1", storedAt: .zero)])
    #expect(try await cacher.entry(forKey: "k")?.value == "1")
    try await engine.close()
  }

  @Test func `a cluster that requires a password gets that of the credentials everywhere`()
    async throws
  {
    let cluster = try await RedisCluster()
    try cluster.performEverywhere("ACL SETUSER app on >secret ~* &* +@all")
    try cluster.performEverywhere("ACL SETUSER default resetkeys resetchannels")
    let spaces = (0..<12).map { "space\($0)" }
    let node = try await Node(cluster.address, Guarded("1"), spaces: spaces) {
      $0.credentials = { RedisCredentials(user: "app", password: "secret") }
    }
    for space in spaces { #expect(try await node.request("k", in: space) == "1") }
    let wrong = try RedisEngine(
      cluster.address,
      options: RedisOptions(credentials: { RedisCredentials(user: "app", password: "mistaken") })
    )
    let error = await #expect(throws: RedisEngineError.self) {
      try await wrong.connect(within: .seconds(600))
    }
    #expect(error?.kind == .authentication)
    #expect(error?.description.contains("mistaken") == false)
    try await wrong.close()
    try await close([node])
  }

  /// Replies that are no list of slots.
  static let replies = [
    "+OK\r\n", "*0\r\n", "*1\r\n+a\r\n", "*1\r\n*2\r\n:0\r\n:16383\r\n",
    "*1\r\n*3\r\n:0\r\n:16383\r\n*0\r\n", "*1\r\n*3\r\n:0\r\n:99999\r\n*2\r\n+127.0.0.1\r\n:1\r\n",
    "*1\r\n*3\r\n:-1\r\n:5\r\n*2\r\n+127.0.0.1\r\n:1\r\n",
    "*1\r\n*3\r\n:9\r\n:5\r\n*2\r\n+127.0.0.1\r\n:1\r\n",
    "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n+127.0.0.1\r\n:0\r\n",
    "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n+127.0.0.1\r\n:99999\r\n", "*1000000000\r\n",
    "$100000\r\n" + String(repeating: "x", count: 100_000) + "\r\n", "-ERR no\r\n", "nonsense\r\n",
  ]

  @Test(.guarantee(.clusterServersAreNotTrusted), arguments: replies)
  func `a server is not trusted with its list of slots`(reply: String) async throws {
    let hostile = try AnsweringServer { command in
      switch command.words[0] {
      case "HELLO": "%2\r\n+proto\r\n:3\r\n+mode\r\n+cluster\r\n"
      case "CLUSTER": reply
      default: command.usual
      }
    }
    let options = RedisOptions(commandTimeout: .seconds(1))
    let engine = try RedisEngine(.cluster([hostile.address]), options: options)
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    _ = try? await cacher.entry(forKey: "k")
    // The process fetches by itself.
    let map = MultiplexerMap<String, String>(id: "values", cacher: cacher) { _ in "fetched" }
    #expect(try await map.request("k") == "fetched")
    try? await engine.close()
  }

  #if TLS
  @Test(.enabled(if: TLSServer.isAvailable, "openssl, or a redis-server with TLS, is missing"))
  func `all servers are reached with TLS if the addresses are`() async throws {
    let keys = try TLSServer()
    let cluster = try await RedisCluster(encryption: keys)
    try await expectAllServersInUse(of: cluster)
  }
  #endif
}
