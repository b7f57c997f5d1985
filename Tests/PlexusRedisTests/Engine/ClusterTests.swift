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
  // MARK: - Slots

  @Test func `spaces of all masters share their fetches, and clears reach all copies`()
    async throws
  {
    let cluster = try await RedisCluster()
    let origin = Guarded("1")
    let spaces = (0..<30).map { "space\($0)" }
    #expect(try Set(spaces.map { try cluster.owner(of: $0) }).count == 3)
    let first = try await ClusterNode(cluster.address, origin, spaces: spaces)
    let second = try await ClusterNode(cluster.address, origin, spaces: spaces)
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
    try await [first, second].close()
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
      let node = try await ClusterNode(cluster.address, origin, spaces: spaces)
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
    var node: ClusterNode? = try await ClusterNode(cluster.address, Guarded("1"))
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
    let nodes = try await ClusterNode.pair(cluster, origin, ClusterNode.soon)
    for node in nodes { #expect(try await node.request("k") == "1") }
    let target = (try cluster.owner(of: "values") + 1) % 3
    try await cluster.moveSlot(of: "values", to: target)
    origin.withLock { $0 = "2" }
    await nodes[0].clear()
    for node in nodes { #expect(try await node.request("k") == "2") }
    await Failover.poll { cluster.connectionCounts(named: "plexus")[target] == 2 }
    try await nodes.expectSharing("2", at: cluster, ClusterNode.soon)
    // Connections to the former master end once nothing has used them for a while.
    await Failover.poll {
      cluster.connectionCounts(named: "plexus").reduce(0, +) == 2
        && cluster.connectionCounts(named: "plexus")[target] == 2
    }
    try await nodes.close()
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
    let idle = try await ClusterNode(cluster.address, origin, slowly)
    let other = try await ClusterNode(cluster.address, origin, slowly)
    try await [idle].expectServing("1")
    try await cluster.moveSlot(of: "values", to: (try cluster.owner(of: "values") + 1) % 3)
    origin.withLock { $0 = "2" }
    await other.clear()
    try await [idle].expectServing("2")
    try await [idle, other].close()
  }

  @Test(.guarantee(.movedSlotsAreFollowed), arguments: [false, true])
  func `a slot that stands half moved serves nothing older than a clear, and heals`(
    isCanceled: Bool
  ) async throws {
    let cluster = try await RedisCluster()
    let origin = Guarded("1")
    let nodes = try await ClusterNode.pair(cluster, origin, ClusterNode.soon)
    try await nodes.expectServing("1")
    let target = (try cluster.owner(of: "values") + 1) % 3
    let move = try cluster.beginMove(of: "values", to: target)
    try cluster.migrateKeys(move, limit: cluster.keyCounts(move)[0] / 2)
    #expect(cluster.keyCounts(move).allSatisfy { $0 > 0 })
    try await nodes.expectServing("1")
    origin.withLock { $0 = "2" }
    let isCleared = (try? await nodes[0].repository.clearAll(.everywhere)) != nil
    for node in nodes {
      // New keys are at the target.
      for key in ClusterNode.keys + ["new"] {
        let value = try await node.request(key)
        #expect(value == "2" || !isCleared && value == "1", "\(key): \(value)")
      }
    }
    if isCanceled { try cluster.cancelMove(move) } else { try await cluster.finishMove(move) }
    await nodes[0].clear()
    try await nodes.expectServing("2")
    origin.withLock { $0 = "3" }
    await nodes[1].clear()
    try await nodes.expectSharing("3", at: cluster, ClusterNode.soon)
    await Failover.poll { nodes.allSatisfy { $0.engine.status.owedRemovals == 0 } }
    try await nodes.close()
  }

  @Test(.guarantee(.movedSlotsAreFollowed))
  func `a slot that moves back and forth under load serves nothing older than a clear`()
    async throws
  {
    let cluster = try await RedisCluster()
    let origin = Guarded("0")
    let nodes = try await ClusterNode.pair(cluster, origin, ClusterNode.soon)
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
              let key = ClusterNode.keys[Int(random.next() % UInt64(ClusterNode.keys.count))]
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
    try await nodes.expectSharing("end", at: cluster, ClusterNode.soon)
    try await nodes.close()
  }

  @Test(.guarantee(.movedSlotsAreFollowed))
  func `a master that is added serves the slots that it gets`() async throws {
    let cluster = try await RedisCluster()
    let origin = Guarded("1")
    let nodes = try await ClusterNode.pair(cluster, origin, ClusterNode.soon)
    for node in nodes { #expect(try await node.request("k") == "1") }
    let master = try await cluster.addMaster()
    #expect(cluster.connectionCounts(named: "plexus")[master] == 0)
    try await cluster.moveSlot(of: "values", to: master)
    origin.withLock { $0 = "2" }
    await nodes[0].clear()
    try await nodes.expectSharing("2", at: cluster, ClusterNode.soon)
    #expect(cluster.connectionCounts(named: "plexus")[master] == 2)
    try await nodes.close()
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
    let nodes = try await ClusterNode.pair(cluster, origin, ClusterNode.replicated)
    try await nodes.expectServing("1")
    let owner = try cluster.owner(of: "values")
    try await cluster.replicate("values")
    origin.withLock { $0 = "2" }
    await nodes[0].clear()
    switch change {
    case .promotion: try await cluster.promoteReplica(of: owner)
    case .crash: await cluster.crash(owner)
    }
    let stopwatch = Stopwatch()
    try await nodes.expectServing("2")
    // A clear needs a replica again.
    if change == .crash { try await cluster.restart(owner) }
    origin.withLock { $0 = "3" }
    await nodes[0].clear()
    try await nodes.expectServing("3")
    let duration = stopwatch.elapsed
    print("after a \(change) in a cluster: \(duration)")
    #expect(duration < .seconds(60))
    #expect(try cluster.owner(of: "values") != owner)
    try await nodes.expectSharing("3", at: cluster, ClusterNode.replicated)
    try await nodes.close()
  }

  @Test(.guarantee(.movedSlotsAreFollowed))
  func `a replica that is behind delays no clear at another master`() async throws {
    let cluster = try await RedisCluster(replicas: 1)
    let spaces = [
      try cluster.names(1, at: 0, prefix: "behind")[0], try cluster.names(1, at: 1)[0],
    ]
    let node = try await ClusterNode(cluster.address, Guarded("1"), spaces: spaces) { options in
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
    try await [node].close()
  }

  @Test(.guarantee(.movedSlotsAreFollowed))
  func `changes after a promotion reach copies that only the former master knows of`()
    async throws
  {
    let cluster = try await RedisCluster(replicas: 1)
    let origin = Guarded("1")
    let nodes = try await ClusterNode.pair(cluster, origin, ClusterNode.soon)
    try await nodes.expectServing("1")
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
    try await nodes.close()
  }

  @Test(.guarantee(.movedSlotsAreFollowed))
  func `a promotion under load serves nothing older than a clear`() async throws {
    let cluster = try await RedisCluster(replicas: 1)
    let origin = Guarded("0")
    let nodes = try await ClusterNode.pair(cluster, origin, ClusterNode.replicated)
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
            for key in ClusterNode.keys.prefix(4) {
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
    try await nodes.close()
  }
}
