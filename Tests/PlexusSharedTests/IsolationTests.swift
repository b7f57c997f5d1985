import Plexus
import PlexusSharedTesting
import PlexusTesting
import TestSupport
import Testing

/// Nodes whose engine cannot be reached.
@Suite(.fewAtOnce)
struct `Maps without their engine` {
  let clock = ManualClock()
  let origin = Origin()

  private func makeNode(
    _ engine: SharedMemory<String>,
    _ change: (inout CachePolicy) -> Void = { _ in }
  ) -> SharedNode {
    var policy = CachePolicy()
    policy.timeToLive = .seconds(600)
    policy.storageTimeout = .seconds(5_000_000_000)
    change(&policy)
    return SharedNode(engine, clock: clock, policy: policy, fetch: origin.value)
  }

  private func makeEngine(keeping time: Duration = .zero) -> SharedMemory<String> {
    SharedMemory(clock: clock, keeping: time)
  }

  // MARK: - Flights

  @Test(.guarantee(.lookupsFromBeforeAClearAreNotShared), arguments: [Duration.zero, .seconds(10)])
  func `no request gets the result of a fetch from before a clear that did not wait for the node`(
    time: Duration
  ) async throws {
    let engine = makeEngine(keeping: time)
    let (node, other) = (makeNode(engine), makeNode(engine))
    let repository = MuxRepository()
    other.map.register(in: repository)
    node.gate.close()
    let old = Task { try await node.map.request("k") }
    await node.gate.arrivals(1)
    node.cacher.cutOff()
    clock.advance(by: max(time, .seconds(2)))
    // The node is no longer waited for.
    try await repository.clearAll(.everywhere)
    // These two share a fetch of their own.
    let new = Task { try await node.map.request("k") }
    await node.gate.arrivals(2)
    let last = Task { await node.map.request(["k"])["k"] }
    node.gate.open()
    for task in [old, new] { #expect(try await task.value == "1") }
    #expect(try await last.value?.get() == "1")
    #expect(node.fetchCount <= 3)
  }

  @Test(.guarantee(.lookupsFromBeforeAClearAreNotShared))
  func `requests share a fetch from before a cut for as long as a clear waits for the node`()
    async throws
  {
    let node = makeNode(makeEngine())
    node.gate.close()
    let old = Task { try await node.map.request("k") }
    await node.gate.arrivals(1)
    node.cacher.cutOff()
    clock.advance(by: .seconds(2) - .nanoseconds(1))
    let new = Task { try await node.map.request("k") }
    while node.map.statistics.joins == 0 { await Task.detached {}.value }
    node.gate.open()
    for task in [old, new] { #expect(try await task.value == "1") }
    #expect(node.fetchCount == 1)
  }

  @Test(.guarantee(.returnedValuesOutdateOlderEntries))
  func `no node goes back to an entry from before the fetch of a value that was not stored`()
    async throws
  {
    let engine = makeEngine()
    let node = makeNode(engine) {
      $0.retry = .exponential(attempts: 2, base: .seconds(1), cap: .seconds(1), jitter: 0)
    }
    let other = makeNode(engine)
    origin.fail()
    let request = Task { try await node.map.request("k") }
    await clock.sleepers(1)
    // The node loses its lease during the pause.
    origin.set("1")
    #expect(try await other.map.refresh("k").request("k") == "1")
    origin.set("2")
    clock.advance(by: .seconds(1))
    #expect(try await request.value == "2")
    #expect(try await node.map.request("k") == "2")
  }

  // MARK: - Keeping

  @Test func `copies are kept for the time to keep since the engine was heard`() async throws {
    let node = makeNode(makeEngine(keeping: .seconds(10)))
    #expect(try await node.map.request("k") == "1")
    clock.advance(by: .seconds(100))
    node.cacher.cutOff()
    origin.set("2")
    clock.advance(by: .seconds(10) - .nanoseconds(1))
    #expect(try await node.map.request("k") == "1")
    clock.advance(by: .nanoseconds(1))
    #expect(try await node.map.request("k") == "2")
  }

  @Test(.guarantee(.copiesAreKeptForTheTimeToKeep))
  func `a value that is fetched without the engine is kept since the start of its fetch`()
    async throws
  {
    let node = makeNode(makeEngine(keeping: .seconds(10)))
    node.cacher.cutOff()
    clock.advance(by: .seconds(1_000))
    node.gate.close()
    let fetch = Task { try await node.map.request("k") }
    await node.gate.arrivals(1)
    clock.advance(by: .seconds(4))
    node.gate.open()
    #expect(try await fetch.value == "1")
    origin.set("2")
    clock.advance(by: .seconds(6) - .nanoseconds(1))
    #expect(try await node.map.request("k") == "1")
    #expect(try await node.map.request(["k"])["k"]?.get() == "1")
    clock.advance(by: .nanoseconds(1))
    #expect(try await node.map.request("k") == "2")
    #expect(node.fetchCount == 2)
  }

  @Test func `kept values are fallbacks for the time to keep, and no longer`() async throws {
    let node = makeNode(makeEngine(keeping: .seconds(10))) { $0.timeToLive = .seconds(1) }
    #expect(try await node.map.request("k") == "1")
    node.cacher.cutOff()
    origin.fail()
    clock.advance(by: .seconds(10) - .nanoseconds(1))
    #expect(try await node.map.request("k") == "1")
    clock.advance(by: .nanoseconds(1))
    await #expect(throws: Origin.Down.self) { try await node.map.request("k") }
    origin.set("2")
    #expect(try await node.map.request("k") == "2")
    origin.fail()
    clock.advance(by: .seconds(9))
    #expect(try await node.map.request("k") == "2")
    clock.advance(by: .seconds(1))
    await #expect(throws: Origin.Down.self) { try await node.map.request("k") }
  }

  @Test func `a fallback is judged at the end of the fetch`() async throws {
    for time in [Duration.zero, .seconds(10)] {
      origin.set("1")
      let node = makeNode(makeEngine(keeping: time)) { $0.timeToLive = .seconds(1) }
      #expect(try await node.map.request("k") == "1")
      await expectNoFallback(of: node, cutOffFor: time)
    }
  }

  @Test(.guarantee(.unheardEnginesAreNoFallback))
  func `an entry of the engine is no fallback after the engine was not heard for too long`()
    async throws
  {
    for time in [Duration.zero, .seconds(10)] {
      origin.set("1")
      let engine = makeEngine(keeping: time)
      let (node, other) = (
        makeNode(engine) { $0.timeToLive = .seconds(1) },
        makeNode(engine) { $0.timeToLive = .seconds(1) }
      )
      _ = try await other.map.request("k")
      await expectNoFallback(of: node, cutOffFor: time)
    }
  }

  /// Expects the error of a fetch during which the node was cut off for too long; the value is stale before.
  private func expectNoFallback(of node: SharedNode, cutOffFor time: Duration) async {
    clock.advance(by: .seconds(1))
    origin.fail()
    node.gate.close()
    let fetch = Task { try await node.map.request("k") }
    await node.gate.arrivals(1)
    node.cacher.cutOff()
    clock.advance(by: max(time, .seconds(2)))
    node.gate.open()
    await #expect(throws: Origin.Down.self) { try await fetch.value }
  }

  @Test(.guarantee(.keptValuesNeedALookAfterReconnecting))
  func `no kept value is used after a reconnection without a look`() async throws {
    let engine = makeEngine(keeping: .seconds(10))
    let (node, other) = (makeNode(engine), makeNode(engine))
    _ = try await node.map.request("old")
    node.cacher.cutOff()
    _ = try await node.map.request("new")
    try await other.map.clear("old")
    origin.set("2")
    _ = try await other.map.request("new")
    node.cacher.reconnect()
    #expect(try await node.map.request("old") == "2")
    // The value of the engine is newer than the one that was kept.
    let looks = node.cacher.lookCount
    #expect(try await node.map.request("new") == "2")
    #expect(node.cacher.lookCount > looks)
  }

  @Test func `a trust that is extended after values were kept ends, so that they are confirmed`()
    async throws
  {
    let node = makeNode(makeEngine(keeping: .seconds(10)))
    node.cacher.cutOff()
    _ = try await node.map.request("k")
    let trust = node.cacher.trust
    #expect(trust.holds)
    trust.extend(until: trust.now.advanced(by: .seconds(100)))
    #expect(!trust.holds)
    trust.extend(until: trust.now.advanced(by: .seconds(100)))
    #expect(trust.holds)
    origin.set("2")
    #expect(try await node.map.request("k") == "2")
  }

  @Test func `a clear everywhere waits until a node without the engine keeps no copy`()
    async throws
  {
    let engine = makeEngine(keeping: .seconds(10))
    let (node, other) = (makeNode(engine), makeNode(engine))
    _ = try await node.map.request("k")
    node.cacher.cutOff()
    let repository = MuxRepository()
    other.map.register(in: repository)
    let cleared = Log<Void>()
    let clearing = Task {
      try await repository.clearAll(.everywhere)
      cleared.append(())
    }
    await clock.sleepers(1)
    origin.set("2")
    clock.advance(by: .seconds(10) - .nanoseconds(1))
    #expect(cleared.entries.isEmpty)
    #expect(try await node.map.request("k") == "1")
    clock.advance(by: .nanoseconds(1))
    try await clearing.value
    #expect(try await node.map.request("k") == "2")
  }

  // MARK: - Load

  @Test func `an outage of the engine is none of the origin`() async throws {
    // 6,000 requests over 400 keys in 20 seconds: at most one fetch a key and time to keep.
    let node = makeNode(makeEngine(keeping: .seconds(10)))
    node.cacher.cutOff()
    for request in 0..<6_000 {
      if request.isMultiple(of: 300) { clock.advance(by: .seconds(1)) }
      _ = try await node.map.request("key \(request % 400)")
    }
    #expect(node.fetchCount <= 3 * 400)
    #expect(node.fetchCount >= 400)
  }

  @Test func `without a time to keep, each request that waits for no other one fetches`()
    async throws
  {
    let node = makeNode(makeEngine())
    node.cacher.cutOff()
    clock.advance(by: .seconds(2))
    for _ in 0..<10 { _ = try await node.map.request("k") }
    #expect(node.fetchCount == 10)
  }

  // MARK: - Several keys

  private func makeBulk(
    _ node: SharedMemoryNode<String>,
    _ fetches: Log<Set<String>>,
    window: Duration = .zero,
    maximumBatchSize: Int? = nil
  ) -> MultiplexerMap<String, String> {
    var policy = CachePolicy()
    policy.storageTimeout = .seconds(5_000_000_000)
    return .bulk(
      id: "values",
      policy: policy,
      cacher: node,
      clock: clock,
      window: window,
      maximumBatchSize: maximumBatchSize
    ) { [origin] keys in
      fetches.append(Set(keys))
      return Dictionary(uniqueKeysWithValues: try keys.map { ($0, try origin.value($0)) })
    }
  }

  private let keys = Set((0..<50).map { "key \($0)" })

  @Test(.guarantee(.severalKeysAreOneFetchWithoutTheEngine))
  func `several keys are one fetch without the engine`() async throws {
    let fetches = Log<Set<String>>()
    let node = makeEngine().node()
    let bulk = makeBulk(node, fetches)
    node.cutOff()
    let values = await bulk.request(Array(keys))
    #expect(values.count == 50)
    #expect(try values.values.allSatisfy { try $0.get() == "1" })
    #expect(fetches.entries == [keys])
    #expect(bulk.statistics.fetches == 1)
  }

  @Test(.guarantee(.batchesKeepTheirWindowWithoutTheEngine))
  func `a batch keeps its largest size without the engine`() async throws {
    let fetches = Log<Set<String>>()
    let node = makeEngine().node()
    let bulk = makeBulk(node, fetches, maximumBatchSize: 20)
    node.cutOff()
    _ = await bulk.request(Array(keys))
    #expect(fetches.entries.map(\.count).sorted() == [10, 20, 20])
  }

  @Test func `requests of single keys share a window without the engine`() async throws {
    let fetches = Log<Set<String>>()
    let node = makeEngine().node()
    let bulk = makeBulk(node, fetches, window: .seconds(1), maximumBatchSize: 50)
    node.cutOff()
    let requests = keys.map { key in Task { try await bulk.request(key) } }
    for request in requests { #expect(try await request.value == "1") }
    #expect(fetches.entries == [keys])
  }

  @Test(.guarantee(.waitingKeysAreOneFetchWithoutTheEngine))
  func `keys that wait for another node are one fetch when the engine is gone`()
    async throws
  {
    let engine = makeEngine()
    let (holder, node) = (makeNode(engine), engine.node())
    let fetches = Log<Set<String>>()
    let bulk = makeBulk(node, fetches)
    holder.gate.close()
    let held = keys.map { key in Task { try await holder.map.request(key) } }
    await holder.gate.arrivals(50)
    let request = Task { await bulk.request(Array(keys)) }
    await clock.sleepers(1)
    node.cutOff()
    #expect(await request.value.count == 50)
    #expect(fetches.entries == [keys])
    holder.gate.open()
    for task in held { _ = await task.result }
  }

  @Test func `a failing fetch of several keys without the engine counts as one failure`()
    async throws
  {
    let fetches = Log<Set<String>>()
    let engine = makeEngine(keeping: .seconds(10))
    let node = engine.node()
    let bulk = makeBulk(node, fetches)
    _ = await bulk.request(Array(keys))
    node.cutOff()
    origin.fail()
    bulk.refresh(Array(keys))
    let values = await bulk.request(Array(keys))
    #expect(try values.values.allSatisfy { try $0.get() == "1" })
    #expect(bulk.statistics.failures == 1)
    #expect(fetches.entries.count == 2)
  }
}
