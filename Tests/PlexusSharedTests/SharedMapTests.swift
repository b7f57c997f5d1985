import Plexus
import PlexusSharedTesting
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `Maps with a shared tier` {
  let clock = ManualClock()
  let origin = Origin()
  let engine: SharedMemory<String>
  let a: SharedNode
  let b: SharedNode

  init() {
    var policy = CachePolicy()
    policy.timeToLive = .seconds(60)
    policy.storageTimeout = .seconds(5_000_000_000)
    engine = SharedMemory<String>(clock: clock)
    a = SharedNode(engine, clock: clock, policy: policy, fetch: origin.value)
    b = SharedNode(engine, clock: clock, policy: policy, fetch: origin.value)
  }

  private func makeNode(_ change: (inout CachePolicy) -> Void = { _ in }) -> SharedNode {
    var policy = CachePolicy()
    policy.timeToLive = .seconds(60)
    policy.storageTimeout = .seconds(5_000_000_000)
    change(&policy)
    return SharedNode(engine, clock: clock, policy: policy, fetch: origin.value)
  }

  // MARK: - One fetch

  @Test(.guarantee(.nodesFetchOnce))
  func `a value that one node has fetched is fetched by no other`() async throws {
    #expect(try await a.map.request("k") == "1")
    origin.set("2")
    let response = try await b.map.response("k")
    #expect(response.value == "1")
    #expect(response.source == .cacher)
    #expect(b.fetchCount == 0)
    #expect(b.map.statistics.fetches == 0)
    // From memory, without another look.
    #expect(try await b.map.request("k") == "1")
    #expect(b.cacher.lookCount == 1)
  }

  @Test(.guarantee(.nodesFetchOnce), .guarantee(.announcementsWakeNodes))
  func `one fetch serves all nodes that ask at once, which are woken without polling`()
    async throws
  {
    a.gate.close()
    let nodes = [a, b, makeNode(), makeNode()]
    async let first = a.map.request("k")
    await a.gate.arrivals(1)
    try await withThrowingTaskGroup { group in
      for node in nodes { group.addTask { try await node.map.request("k") } }
      a.gate.open()
      for try await value in group { #expect(value == "1") }
    }
    #expect(try await first == "1")
    #expect(nodes.map(\.fetchCount) == [1, 0, 0, 0])
    // The clock has not moved: no node has waited for a time.
    for node in nodes.dropFirst() { #expect(node.cacher.lookCount <= 2) }
  }

  @Test(.guarantee(.fetchesOfDeadNodesAreTakenOver))
  func `the fetch of a node that dies is taken over when its lease ends`() async throws {
    a.gate.close()
    let lost = Task { try await a.map.request("k") }
    await a.gate.arrivals(1)
    async let value = b.map.request("k")
    await clock.sleepers(1)
    a.cacher.cutOff()
    clock.advance(by: .seconds(3))
    #expect(try await value == "1")
    #expect(b.fetchCount == 1)
    // What the lost node has fetched is not stored.
    origin.set("late")
    a.gate.open()
    _ = await lost.result
    a.cacher.reconnect()
    #expect(try await b.map.request("k") == "1")
  }

  @Test func `a fetch that is cancelled gives its lease back`() async throws {
    let node = makeNode { $0.whenUnobserved = .cancel }
    node.gate.close()
    let cancelled = Task { try await node.map.request("k") }
    await node.gate.arrivals(1)
    async let value = b.map.request("k")
    cancelled.cancel()
    #expect(try await value == "1")
    #expect(b.fetchCount == 1)
  }

  @Test(.guarantee(.fetchesOfDeadNodesAreTakenOver))
  func `a fetch of several keys that is cancelled gives its leases back`() async throws {
    let gate = Gate()
    var policy = CachePolicy()
    policy.whenUnobserved = .cancel
    let bulk = MultiplexerMap<String, String>.bulk(
      id: "values",
      policy: policy,
      cacher: engine.node(),
      clock: clock
    ) { keys in
      try await gate.wait()
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, "bulk") })
    }
    let cancelled = Task { await bulk.request(["k", "l"]) }
    await gate.arrivals(1)
    async let values = b.map.request(["k", "l"])
    cancelled.cancel()
    for (_, value) in await values { #expect(try value.get() == "1") }
    #expect(Set(b.fetches.entries) == ["k", "l"])
  }

  @Test(.guarantee(.fetchesOfDeadNodesAreTakenOver))
  func `a request that is cancelled before its look, or while it waits, keeps no lease`()
    async throws
  {
    let node = makeNode { $0.whenUnobserved = .cancel }
    // Before its first look.
    let early = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await node.map.request("k")
    }
    _ = await early.result
    a.gate.close()
    async let value = a.map.request("k")
    await a.gate.arrivals(1)
    // While it waits for the lease of another node.
    let waiting = Task { try await node.map.request("k") }
    await clock.sleepers(1)
    waiting.cancel()
    _ = await waiting.result
    a.gate.open()
    #expect(try await value == "1")
    #expect(try await node.map.request("k") == "1")
    #expect(node.fetchCount == 0)
  }

  @Test(.guarantee(.failuresReachAllNodes))
  func `a failure fails for all that wait, and the next request fetches`() async throws {
    origin.fail()
    a.gate.close()
    let first = Task { try await a.map.request("k") }
    await a.gate.arrivals(1)
    let second = Task { try await b.map.request("k") }
    // The second node waits for the lease.
    await clock.sleepers(1)
    a.gate.open()
    await #expect(throws: Origin.Down.self) { try await first.value }
    let failure = await #expect(throws: SharedCache.Failure.self) { try await second.value }
    #expect(failure?.isConnectivityFailure == true)
    #expect(b.fetchCount == 0)
    origin.set("2")
    #expect(try await b.map.request("k") == "2")
    #expect(try await a.map.request("k") == "2")
  }

  @Test func `the result of a fetch is the answer for all that wait, however short its time is`()
    async throws
  {
    let (first, second) = (makeNode { $0.timeToLive = .zero }, makeNode { $0.timeToLive = .zero })
    first.gate.close()
    async let one = first.map.request("k")
    await first.gate.arrivals(1)
    async let other = second.map.request("k")
    await clock.sleepers(1)
    first.gate.open()
    #expect(try await one == "1")
    #expect(try await other == "1")
    #expect(second.fetchCount == 0)
    _ = try await second.map.request("k")
    #expect(second.fetchCount == 1)
  }

  @Test func `a request waits for a fetch of its own node that was cut off`() async throws {
    a.gate.close()
    let early = Task { try await a.map.request("k") }
    await a.gate.arrivals(1)
    a.cacher.reconnect()
    let late = Task { try await a.map.request("k") }
    await clock.sleepers(1)
    a.gate.open()
    #expect(try await early.value == "1")
    #expect(try await late.value == "1")
    #expect(a.fetchCount == 1)
  }

  @Test(.guarantee(.severalKeysTakeOneRoundTrip))
  func `several keys are looked up at once, and only the rest is fetched`() async throws {
    let fetches = Log<Set<String>>()
    let node = engine.node()
    let bulk = MultiplexerMap<String, String>.bulk(id: "values", cacher: node, clock: clock) {
      keys in
      fetches.append(Set(keys))
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, "bulk") })
    }
    for key in ["a", "b"] { _ = try await a.map.request(key) }
    let values = try await bulk.request(["a", "b", "c", "d"]).mapValues { try $0.get() }
    #expect(values == ["a": "1", "b": "1", "c": "bulk", "d": "bulk"])
    #expect(fetches.entries == [["c", "d"]])
    #expect(node.lookCount == 1)
    #expect(try await b.map.request("c") == "bulk")
    #expect(b.fetchCount == 0)
  }

  @Test func `values that were not requested are not stored beside a shared tier`() async throws {
    let bulk = MultiplexerMap<String, String>.bulk(
      id: "values",
      cacher: engine.node(),
      clock: clock
    ) { keys in
      Dictionary(uniqueKeysWithValues: (keys + ["other"]).map { ($0, "bulk") })
    }
    #expect(try await bulk.request("a") == "bulk")
    #expect(bulk.keys == ["a"])
    #expect(try await b.map.request("other") == "1")
  }

  @Test(.guarantee(.severalKeysTakeOneRoundTrip))
  func `a fetch of several keys leaves out what another node fetches`() async throws {
    let fetches = Log<Set<String>>()
    let bulk = MultiplexerMap<String, String>.bulk(
      id: "values",
      cacher: engine.node(),
      clock: clock
    ) {
      keys in
      fetches.append(Set(keys))
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, "bulk") })
    }
    a.gate.close()
    async let first = a.map.request("a")
    await a.gate.arrivals(1)
    async let both = bulk.request(["a", "b"])
    await fetches.first(1)
    a.gate.open()
    #expect(try await both.mapValues { try $0.get() } == ["a": "1", "b": "bulk"])
    #expect(try await first == "1")
    #expect(fetches.entries == [["b"]])
  }

  @Test(.guarantee(.statisticsTimeOwnFetches))
  func `the time of a fetch of several keys, and of a fetch without the others, is counted`()
    async throws
  {
    let (started, clock) = (Log<Set<String>>(), clock)
    let bulk = MultiplexerMap<String, String>.bulk(
      id: "values",
      cacher: engine.node(),
      clock: clock
    ) { keys in
      started.append(Set(keys))
      clock.advance(by: .seconds(keys.count))
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, "bulk") })
    }
    _ = await bulk.request(["a", "b"])
    #expect(bulk.statistics.fetchTime == .seconds(2))
    // A key that another node fetches is waited for, and then fetched alone, since that fetch is cancelled.
    let other = makeNode { $0.whenUnobserved = .cancel }
    other.gate.close()
    let first = Task { try await other.map.request("c") }
    await other.gate.arrivals(1)
    async let both = bulk.request(["c", "d"])
    await started.first(2)
    first.cancel()
    #expect(try await both.mapValues { try $0.get() } == ["c": "bulk", "d": "bulk"])
    #expect(started.entries == [["a", "b"], ["d"], ["c"]])
    #expect(bulk.statistics.fetchTime == .seconds(4))
    #expect(bulk.statistics.longestFetch == .seconds(2))
  }

  // MARK: - Time

  @Test(.guarantee(.engineMeasuresAge))
  func `the age of a value is that of the engine, whatever clock its node has`() async throws {
    _ = try await a.map.request("k")
    clock.advance(by: .seconds(40))
    let response = try await b.map.response("k")
    #expect(response.age == .seconds(40))
    clock.advance(by: .seconds(19))
    #expect(try await b.map.request("k") == "1")
    origin.set("2")
    clock.advance(by: .seconds(1))
    #expect(try await b.map.request("k") == "2")
    #expect(b.fetchCount == 1)
    #expect(try await a.map.request("k") == "2")
    #expect(a.fetchCount == 1)
  }

  @Test func `a stale value is renewed once, behind the request`() async throws {
    let node = makeNode { $0.staleWhileRevalidate = .seconds(600) }
    #expect(try await node.map.request("k") == "1")
    clock.advance(by: .seconds(60))
    origin.set("2")
    #expect(try await node.map.request("k") == "1")
    await node.fetches.first(2)
    #expect(try await b.map.request("k") == "2")
    #expect(node.fetchCount == 2)
  }

  // MARK: - Changes

  @Test(.guarantee(.changesAreFollowedEverywhere))
  func `a refresh on one node fetches once, and all nodes follow`() async throws {
    _ = try await a.map.request("k")
    _ = try await b.map.request("k")
    origin.set("2")
    #expect(try await a.map.refresh("k").request("k") == "2")
    #expect(try await b.map.request("k") == "2")
    #expect(b.fetchCount == 0)
  }

  @Test(.guarantee(.changesAreFollowedEverywhere))
  func `a refresh of a key that the node does not have reaches the others`() async throws {
    _ = try await b.map.request("k")
    origin.set("2")
    a.map.refresh("k")
    try await a.map.flush()
    // In the order of the queue behind the refresh.
    a.map.store("other", for: "other")
    try await a.map.flush()
    #expect(try await b.map.request("k") == "2")
    #expect(b.fetchCount == 2)
  }

  @Test func `a refresh of everything is no reason to take an older entry`() async throws {
    _ = try await a.map.request("k")
    _ = try await b.map.request("other")
    origin.set("2")
    #expect(try await b.map.refreshAll().request("k") == "2")
    #expect(try await b.map.request("other") == "2")
  }

  @Test(.guarantee(.changesAreFollowedEverywhere))
  func `a value that is stored on one node is the value of all`() async throws {
    _ = try await b.map.request("k")
    a.map.store("mine", for: "k")
    try await a.map.flush()
    #expect(try await b.map.request("k") == "mine")
    #expect(try await a.map.request("k") == "mine")
  }

  @Test(.guarantee(.storedValuesFollowOtherProcesses))
  func `a stored value follows the changes of other nodes, also if its node has not looked for it`()
    async throws
  {
    a.map.store("mine", for: "k")
    try await a.map.flush()
    #expect(try await b.map.request("k") == "mine")
    origin.set("2")
    try await b.map.clear("k")
    #expect(try await a.map.request("k") == "2")
    a.map.store("other", for: "other")
    try await a.map.flush()
    b.map.store("theirs", for: "other")
    try await b.map.flush()
    #expect(try await a.map.request("other") == "theirs")
  }

  @Test(.guarantee(.changesAreFollowedEverywhere))
  func `a key that is cleared on one node is gone on all`() async throws {
    _ = try await a.map.request("k")
    _ = try await b.map.request("k")
    origin.set("2")
    try await a.map.clear("k")
    #expect(try await b.map.request("k") == "2")
    #expect(try await a.map.request("k") == "2")
    #expect(a.fetchCount == 1)
  }

  @Test func `a cleared value is not used after a failure elsewhere`() async throws {
    _ = try await a.map.request("k")
    _ = try await b.map.request("k")
    try await a.map.clear("k")
    origin.fail()
    await #expect(throws: Origin.Down.self) { try await b.map.request("k") }
    #expect(b.map.cachedValue("k") == nil)
  }

  @Test func `an outdated value is used after a failure`() async throws {
    _ = try await a.map.request("k")
    _ = try await b.map.request("k")
    a.map.refresh("k")
    try await a.map.flush()
    origin.fail()
    #expect(try await b.map.request("k") == "1")
    #expect(try await a.map.request("k") == "1")
  }

  @Test(.guarantee(.outdatedLeasesStoreNothing))
  func `nothing is kept that was fetched before a removal elsewhere`() async throws {
    a.gate.close()
    let early = Task { try await a.map.request("k") }
    await a.gate.arrivals(1)
    try await b.map.clear("k")
    origin.set("2")
    #expect(try await b.map.request("k") == "2")
    origin.set("1")
    a.gate.open()
    #expect(try await early.value == "1")
    #expect(try await a.map.request("k") == "2")
    #expect(try await b.map.request("k") == "2")
  }

  @Test(.guarantee(.outdatedLeasesStoreNothing))
  func `a fetch whose fill was refused leaves nothing in memory`() async throws {
    a.gate.close()
    let early = Task { try await a.map.request("k") }
    await a.gate.arrivals(1)
    // The node does not hear of the removal while it trusts its copies.
    a.cacher.delayAnnouncements()
    try await b.map.clear("k")
    a.gate.open()
    #expect(try await early.value == "1")
    origin.set("2")
    #expect(try await a.map.request("k") == "2")
  }

  @Test func `a change that is announced during a look is not overlooked`() async throws {
    _ = try await b.map.request("k")
    a.cacher.delayAnnouncements()
    #expect(try await a.map.request("k") == "1")
    b.map.store("2", for: "k")
    try await b.map.flush()
    #expect(try await a.map.request("k") == "1")
    a.cacher.hearAnnouncements()
    #expect(try await a.map.request("k") == "2")
  }

  @Test func `a value that must not be kept replaces no entry, and leaves none behind`()
    async throws
  {
    let value = Guarded("1")
    let map = MultiplexerMap<String, String>(id: "values", cacher: engine.node(), clock: clock) {
      (_, context: FetchContext<String>) in
      let value = value.withLock { $0 }
      return value == "1" ? .value(value) : .transient(value)
    }
    #expect(try await map.request("k") == "1")
    value.withLock { $0 = "2" }
    #expect(try await map.refresh("k").request("k") == "2")
    try await map.flush()
    origin.set("3")
    #expect(try await b.map.request("k") == "3")
  }

  @Test func `live subscribers get what another node has stored`() async throws {
    let values = Log<String?>()
    let task = Task { [subscription = b.map["k"].subscription(refetching: .whenStale)] in
      for await state in subscription { values.append(state.value) }
    }
    await values.contains("1")
    a.map.store("2", for: "k")
    await values.contains("2")
    #expect(b.fetchCount == 1)
    task.cancel()
  }

  // MARK: - Everywhere

  @Test(.guarantee(.clearEverywhereOutlastsTrust))
  func `after a clear everywhere no node of a shared tier answers with an older value`()
    async throws
  {
    _ = try await a.map.request("k")
    _ = try await b.map.request("k")
    let repository = MuxRepository()
    a.map.register(in: repository)
    origin.set("2")
    try await repository.clearAll(.everywhere)
    #expect(try await b.map.request("k") == "2")
    #expect(try await a.map.request("k") == "2")
  }

  @Test(.guarantee(.clearEverywhereOutlastsTrust))
  func `a clear everywhere waits for a node that does not react`() async throws {
    _ = try await a.map.request("k")
    _ = try await b.map.request("k")
    let repository = MuxRepository()
    a.map.register(in: repository)
    b.cacher.delayAnnouncements()
    origin.set("2")
    let cleared = Log<Void>()
    let clearing = Task {
      try await repository.clearAll(.everywhere)
      cleared.append(())
    }
    await clock.sleepers(1)
    // It may use its copies as long as its lease lasts, and the clear has not returned.
    #expect(try await b.map.request("k") == "1")
    #expect(cleared.entries.isEmpty)
    clock.advance(by: .seconds(2))
    try await clearing.value
    #expect(try await b.map.request("k") == "2")
  }

  @Test(.guarantee(.clearEverywhereOutlastsTrust))
  func `a caller does not join a fetch that began before a clear everywhere`() async throws {
    b.gate.close()
    let early = Task { try await b.map.request("k") }
    await b.gate.arrivals(1)
    let repository = MuxRepository()
    a.map.register(in: repository)
    try await repository.clearAll(.everywhere)
    origin.set("2")
    let late = Task { try await b.map.request("k") }
    await b.gate.arrivals(2)
    b.gate.open()
    #expect(try await late.value == "2")
    _ = try await early.value
    #expect(try await b.map.request("k") == "2")
  }

  @Test func `a clear of this process leaves the entries of the others`() async throws {
    _ = try await a.map.request("k")
    let repository = MuxRepository()
    a.map.register(in: repository)
    try await repository.clearAll(.here)
    #expect(a.map.cachedValue("k") == nil)
    origin.set("2")
    #expect(try await a.map.request("k") == "1")
    #expect(a.fetchCount == 1)
  }

  @Test(.guarantee(.clearEverywhereOutlastsTrust))
  func `a value that was stored before a clear everywhere is not written after it`()
    async throws
  {
    _ = try await a.map.request("k")
    a.cacher.cutOff()
    a.map.store("mine", for: "k")
    let repository = MuxRepository()
    b.map.register(in: repository)
    async let cleared: Void = repository.clearAll(.everywhere)
    await clock.sleepers(1)
    clock.advance(by: .seconds(2))
    try await cleared
    a.cacher.reconnect()
    origin.set("2")
    #expect(try await a.map.request("k") == "2")
    #expect(try await b.map.request("k") == "2")
  }

  // MARK: - Isolation

  @Test(.guarantee(.nearLeasesLimitCopies))
  func `copies are used for the near lease, and none after a reconnection without a look`()
    async throws
  {
    _ = try await a.map.request("k")
    a.cacher.cutOff()
    origin.set("2")
    clock.advance(by: .seconds(2) - .nanoseconds(1))
    #expect(try await a.map.request("k") == "1")
    try await b.map.clear("k")
    a.cacher.reconnect()
    #expect(try await a.map.request("k") == "2")
    #expect(a.fetchCount == 2)
  }

  @Test(.guarantee(.nearLeasesLimitCopies))
  func `a node that is cut off fetches for its waiting callers, and keeps nothing`()
    async throws
  {
    _ = try await a.map.request("k")
    a.cacher.cutOff()
    clock.advance(by: .seconds(2))
    origin.set("2")
    a.gate.close()
    async let first = a.map.request("k")
    await a.gate.arrivals(2)
    async let second = a.map.request("k")
    a.gate.open()
    #expect(try await first == "2")
    #expect(try await second == "2")
    origin.set("3")
    #expect(try await a.map.request("k") == "3")
    #expect(a.map.statistics.cacherErrors > 0)
  }

  @Test(.guarantee(.engineFailsNoRequest))
  func `a request that waits for another node fetches when the engine is gone`()
    async throws
  {
    a.gate.close()
    let first = Task { try await a.map.request("k") }
    await a.gate.arrivals(1)
    origin.set("2")
    async let second = b.map.request("k")
    async let third = b.map.request(["k", "other"])
    // The lease of the first node is waited for.
    await clock.sleepers(1)
    b.cacher.cutOff()
    // The clock has not moved.
    #expect(try await second == "2")
    #expect(try await third["k"]?.get() == "2")
    a.gate.open()
    _ = await first.result
  }

  /// Makes a node fetch a newer value than the engine has, and connects it again.
  private func fetchWithoutEngine() async throws {
    _ = try await a.map.request("k")
    a.cacher.cutOff()
    clock.advance(by: .seconds(2))
    origin.set("2")
    #expect(try await a.map.request("k") == "2")
    a.cacher.reconnect()
  }

  @Test(.guarantee(.nodesNeverGoBack))
  func `a node never goes back to something older than it has returned`() async throws {
    try await fetchWithoutEngine()
    // The engine still has the first value.
    #expect(try await a.map.request("k") == "2")
    #expect(try await b.map.request("k") == "2")
    #expect(b.fetchCount == 0)
  }

  @Test(.guarantee(.nearLeasesLimitCopies))
  func `a value that was not confirmed is not used after a failure`() async throws {
    _ = try await a.map.request("k")
    a.cacher.cutOff()
    clock.advance(by: .seconds(2))
    origin.fail()
    await #expect(throws: Origin.Down.self) { try await a.map.request("k") }
  }

  /// Returns a node that renews its value early, and whose entry the engine has evicted, which is not announced.
  private func evictedNode() async throws -> SharedNode {
    let node = makeNode { $0.refreshAhead = .seconds(20) }
    #expect(try await node.map.request("k") == "1")
    try await node.cacher.remove(.keys(["values/k"]), reach: .shared)
    return node
  }

  @Test(.guarantee(.earlyRenewalsKeepFreshValues))
  func `a fresh value that the engine has evicted stays if its early renewal fails`()
    async throws
  {
    let node = try await evictedNode()
    clock.advance(by: .seconds(50))
    origin.fail()
    let states = node.map.subscribe(to: "k")
    #expect(try await node.map.request("k") == "1")
    for await state in states {
      #expect(state.value == "1")
      if case .failed = state { break }
    }
    #expect(try await node.map.response("k").isStale == false)
    #expect(node.fetchCount == 2)
  }

  @Test(.guarantee(.earlyRenewalsKeepFreshValues))
  func `an expired value that the engine has evicted is not used after a failure`()
    async throws
  {
    let node = try await evictedNode()
    clock.advance(by: .seconds(60))
    origin.fail()
    await #expect(throws: Origin.Down.self) { try await node.map.request("k") }
    #expect(node.map.cachedValue("k") == nil)
  }

  @Test(.guarantee(.knownRemovalsStay))
  func `a clear is not undone by an engine that restarts with an old snapshot`() async throws {
    _ = try await a.map.request("k")
    let snapshot = engine.snapshot
    try await b.map.clear()
    origin.set("2")
    engine.restore(snapshot)
    #expect(try await b.map.request("k") == "2")
    #expect(try await a.map.request("k") == "2")
  }

  /// Returns the content of the engine between a lease and its fill, after which the first node has returned "2".
  private func snapshotWithinFetch() async throws -> SharedMemory<String>.Snapshot {
    #expect(try await a.map.request("k") == "1")
    origin.set("2")
    // The first value is still fresh for the other nodes.
    let node = makeNode { $0.timeToLive = .zero }
    node.gate.close()
    let fetch = Task { try await node.map.request("k") }
    await node.gate.arrivals(1)
    let snapshot = engine.snapshot
    node.gate.open()
    #expect(try await fetch.value == "2")
    #expect(try await a.map.request("k") == "2")
    return snapshot
  }

  /// Lets the lease of a snapshot expire, which no node renews.
  private func expireLease() -> Task<Void, Never> {
    Task {
      await clock.sleepers(1)
      clock.advance(by: .seconds(3))
    }
  }

  @Test(.guarantee(.nodesNeverGoBack))
  func `a snapshot of an engine from between a lease and its fill makes no node go back`()
    async throws
  {
    let snapshot = try await snapshotWithinFetch()
    #expect(try await b.map.request("k") == "2")
    engine.restore(snapshot)
    let expiry = expireLease()
    defer { expiry.cancel() }
    #expect(try await a.map.request("k") == "2")
    #expect(try await b.map.request("k") == "2")
    // One of them has fetched, and the engine has its value.
    #expect(a.fetchCount + b.fetchCount == 2)
    #expect(try await makeNode().map.request("k") == "2")
  }

  @Test(.guarantee(.nodesNeverGoBack)) func `no node goes back for many keys at once`()
    async throws
  {
    let snapshot = try await snapshotWithinFetch()
    let (node, origin) = (engine.node(), origin)
    let bulk = MultiplexerMap<String, String>.bulk(id: "values", cacher: node, clock: clock) {
      keys in
      Dictionary(uniqueKeysWithValues: try keys.map { ($0, try origin.value($0)) })
    }
    #expect(try await bulk.request(["k"]).mapValues { try $0.get() } == ["k": "2"])
    engine.restore(snapshot)
    let expiry = expireLease()
    defer { expiry.cancel() }
    #expect(try await bulk.request(["k"]).mapValues { try $0.get() } == ["k": "2"])
  }

  @Test(.guarantee(.nodesNeverGoBack))
  func `an older value is no fallback for a fetch that fails`() async throws {
    let snapshot = try await snapshotWithinFetch()
    origin.fail()
    engine.restore(snapshot)
    let expiry = expireLease()
    defer { expiry.cancel() }
    await #expect(throws: Origin.Down.self) { try await a.map.request("k") }
  }

  @Test(.guarantee(.nodesNeverGoBack))
  func `a value that the engine missed leaves no older one as a fallback`() async throws {
    try await fetchWithoutEngine()
    origin.fail()
    await #expect(throws: Origin.Down.self) { try await a.map.request("k") }
  }

  @Test(.guarantee(.nodesNeverGoBack))
  func `an engine that repeats an older entry is not asked again`()
    async throws
  {
    let cacher = RepeatingCacher(engine.node())
    let map = MultiplexerMap(id: "values", cacher: cacher, clock: clock) { key in
      try origin.value(key)
    }
    #expect(try await map.request("k") == "1")
    origin.set("2")
    cacher.repeats()
    #expect(try await map.refresh("k").request("k") == "2")
    #expect(cacher.repeatCount == 1)
  }

  @Test(.guarantee(.engineFailsNoRequest))
  func `an engine whose entries never suffice is left alone after a few looks`()
    async throws
  {
    let cacher = RisingCacher(engine.node())
    var policy = CachePolicy()
    policy.timeToLive = .seconds(60)
    let map = MultiplexerMap(id: "values", policy: policy, cacher: cacher, clock: clock) { key in
      try origin.value(key)
    }
    #expect(try await map.request("k") == "1")
    #expect(try await map.request("k") == "1")
    #expect(await map.request(["a", "b"]).values.allSatisfy { (try? $0.get()) == "1" })
    #expect(cacher.lookCount <= 40)
  }

  /// Returns the lease of a key for a node.
  private func lease(_ node: any SharedCacher<String>) async throws -> SharedCache.Lease {
    let finding = try await node.look(for: ["k": SharedCache.Wish()])["k"]
    guard case .granted(let lease, _) = finding else { throw Origin.Down() }
    return lease
  }

  @Test(.guarantee(.lostLeasesAreNotGrantedAgain), arguments: [false, true])
  func `a lease that was lost with its engine is not granted again`(
    losesEverything: Bool
  ) async throws {
    let snapshot = engine.snapshot
    let lost = try await lease(a.cacher)
    engine.restore(losesEverything ? nil : snapshot)
    let lease = try await lease(a.cacher)
    #expect(lost.version < lease.version)
    let old = CacheEntry(value: "old", storedAt: .zero)
    #expect(try await a.cacher.fill(old, under: lost) == .cleared)
    #expect(try await b.cacher.entry(forKey: "k") == nil)
    let new = CacheEntry(value: "new", storedAt: .zero)
    #expect(try await a.cacher.fill(new, under: lease) == .stored)
  }

  @Test(.guarantee(.lostLeasesAreNotGrantedAgain))
  func `an epoch that was lost with its engine differs from all later ones`() async throws {
    let (absent, present) = (engine.node(), engine.node())
    let snapshot = engine.snapshot
    try await absent.remove(.all, reach: .shared)
    let lost = try await lease(absent)
    absent.cutOff()
    engine.restore(snapshot)
    try await present.remove(.all, reach: .shared)
    let lease = try await lease(present)
    #expect(lease.version.epoch == lost.version.epoch)
    #expect(lease.version.nonce != lost.version.nonce)
    absent.reconnect()
    let old = CacheEntry(value: "old", storedAt: .zero)
    #expect(try await absent.fill(old, under: lost) == .cleared)
  }

  @Test(.guarantee(.knownRemovalsStay)) func `an engine that has lost everything is filled again`()
    async throws
  {
    _ = try await a.map.request("k")
    engine.restore()
    origin.set("2")
    #expect(try await a.map.request("k") == "2")
    #expect(try await b.map.request("k") == "2")
    #expect(b.fetchCount == 0)
  }

  @Test(.guarantee(.changesAreFollowedEverywhere))
  func `a removal that failed is made up for before anything is used again`() async throws {
    _ = try await a.map.request("k")
    _ = try await b.map.request("k")
    a.cacher.cutOff()
    origin.set("2")
    await #expect(throws: (any Error).self) { try await a.map.clear("k") }
    a.cacher.reconnect()
    #expect(try await a.map.request("k") == "2")
    #expect(try await b.map.request("k") == "2")
  }

  @Test(.guarantee(.engineFailsNoRequest))
  func `a request waits for a slow engine no longer than its timeout, and later ones do not wait`()
    async throws
  {
    let node = makeNode { $0.storageTimeout = .seconds(1) }
    node.cacher.delayCalls(by: .seconds(3_600))
    async let first = node.map.request("k")
    await clock.sleepers(2)
    clock.advance(by: .seconds(1))
    #expect(try await first == "1")
    origin.set("2")
    #expect(try await node.map.request("k") == "2")
  }

  @Test(.guarantee(.slowValuesKeepNoOthersWaiting))
  func `a value that the engine takes too slowly does not keep others from being read`()
    async throws
  {
    _ = try await b.map.request("other")
    let node = makeNode { $0.storageTimeout = .seconds(1) }
    node.gate.close()
    async let value = node.map.request("k")
    await node.gate.arrivals(1)
    node.cacher.delayCalls(by: .seconds(3_600))
    node.gate.open()
    await clock.sleepers(2)
    clock.advance(by: .seconds(1))
    #expect(try await value == "1")
    node.cacher.delayCalls(by: .zero)
    #expect(try await node.map.response("other").source == .cacher)
  }

  @Test func `a released map is released, whatever the engine tells`() async throws {
    let node = engine.node()
    weak var map: MultiplexerMap<String, String>?
    do {
      let made = MultiplexerMap<String, String>(cacher: node, clock: clock) { $0 }
      _ = try await made.request("k")
      map = made
    }
    #expect(map == nil)
    node.reconnect()
    _ = try await a.map.request("k")
  }
}
