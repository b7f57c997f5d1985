import Plexus
import PlexusSharedTesting
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `Tags of a shared tier` {
  let clock = ManualClock()
  let origin = Origin()
  let engine: SharedMemory<String>
  let a: SharedNode
  let b: SharedNode
  let repository = MuxRepository()

  init() {
    engine = SharedMemory<String>(clock: clock)
    a = Self.makeNode(engine, clock, origin)
    b = Self.makeNode(engine, clock, origin)
    a.map.register(in: repository)
  }

  /// Returns a node whose keys have tags by their first letters.
  private static func makeNode(
    _ engine: SharedMemory<String>,
    _ clock: ManualClock,
    _ origin: Origin
  ) -> SharedNode {
    var policy = CachePolicy()
    policy.storageTimeout = .seconds(5_000_000_000)
    return SharedNode(
      engine,
      clock: clock,
      policy: policy,
      tagging: { key in key.first.map { ["all", CacheTag(String($0))] } ?? [] },
      fetch: origin.value
    )
  }

  @Test(.guarantee(.tagRemovalsReachEveryNode), arguments: [ClearReach.shared, .everywhere])
  func `a cleared tag is gone for every node of a shared tier, also without values in memory`(
    reach: ClearReach
  ) async throws {
    // A node fills the engine and is gone.
    do {
      let filler = Self.makeNode(engine, clock, origin)
      for key in ["a1", "b1"] { _ = try await filler.map.request(key) }
    }
    _ = try await b.map.request("a2")
    origin.set("2")
    try await repository.clear(tags: ["a"], reach)
    #expect(try await b.map.request("a1") == "2")
    #expect(try await b.map.request("a2") == "2")
    #expect(try await a.map.request("a1") == "2")
    // Another tag.
    #expect(try await a.map.request("b1") == "1")
    #expect(a.fetchCount == 0)
  }

  @Test(.guarantee(.tagRemovalsReachEveryNode))
  func `a value that was fetched before its tag was cleared elsewhere is not kept`()
    async throws
  {
    b.gate.close()
    async let old = b.map.request("a1")
    await b.gate.arrivals(1)
    try await repository.clear(tags: ["all"], .shared)
    origin.set("2")
    // It has the value that the fetch was given, whatever that was.
    b.gate.open()
    _ = try await old
    origin.set("3")
    #expect(try await b.map.request("a1") == "3")
    #expect(try await a.map.request("a1") == "3")
  }

  enum Change: CaseIterable {
    case clearKey, clearTag, clearTagEverywhere, clearAll, refresh

    func make(on node: SharedNode, _ repository: MuxRepository) async throws {
      switch self {
      case .clearKey: try await node.map.clear("a1")
      case .clearTag: try await repository.clear(tags: ["a"], .shared)
      case .clearTagEverywhere: try await repository.clear(tags: ["a"], .everywhere)
      case .clearAll: try await repository.clearAll(.everywhere)
      case .refresh:
        node.map.refresh("a1")
        try await node.map.flush()
      }
    }
  }

  @Test(.guarantee(.clearEverywhereOutlastsTrust), arguments: Change.allCases)
  func `a request after a change on another node joins no fetch from before it`(
    change: Change
  ) async throws {
    b.gate.close()
    async let before = b.map.request("a1")
    await b.gate.arrivals(1)
    try await change.make(on: a, repository)
    async let after = b.map.request("a1")
    while b.cacher.lookCount < 2 { await Task.detached {}.value }
    b.gate.open()
    #expect(try await [before, after] == ["1", "1"])
    #expect(b.fetchCount == 2)
  }

  @Test(.guarantee(.clearEverywhereOutlastsTrust), arguments: Change.allCases)
  func `a request after a change on another node joins no fetch that was taken over before it`(
    change: Change
  ) async throws {
    let dead = Self.makeNode(engine, clock, origin)
    dead.gate.close()
    let lost = Task { try await dead.map.request("a1") }
    await dead.gate.arrivals(1)
    b.gate.close()
    async let before = b.map.request("a1")
    await clock.sleepers(1)
    dead.cacher.cutOff()
    clock.advance(by: .seconds(3))
    await b.gate.arrivals(1)
    try await change.make(on: a, repository)
    let count = b.cacher.lookCount
    async let after = b.map.request("a1")
    while b.cacher.lookCount == count { await Task.detached {}.value }
    b.gate.open()
    #expect(try await [before, after] == ["1", "1"])
    #expect(b.fetchCount == 2)
    dead.gate.open()
    _ = await lost.result
  }

  @Test(.guarantee(.clearEverywhereOutlastsTrust), arguments: Change.allCases)
  func `a request after a change on another node joins no fetch whose lease was lost before`(
    change: Change
  ) async throws {
    let cacher = LateCacher(node: engine.node())
    let gate = Gate()
    let map = MultiplexerMap<String, String>(
      id: "values",
      cacher: cacher,
      tagging: { _ in ["all", "a"] },
      clock: clock,
      onKeyFetch: { [origin] key in
        let value = try origin.value(key)
        try await gate.wait()
        return value
      }
    )
    async let before = map.request("a1")
    await cacher.gate.arrivals(1)
    // It ends the lease before the fetch begins, and the next change is not announced.
    try await change.make(on: a, repository)
    cacher.gate.open()
    await gate.arrivals(1)
    origin.set("2")
    try await change.make(on: a, repository)
    async let after = map.request("a1")
    while map.statistics.joins + map.statistics.misses < 2 { await Task.detached {}.value }
    gate.open()
    #expect(try await before == "1")
    #expect(try await after == "2")
  }

  @Test(.guarantee(.clearEverywhereOutlastsTrust), arguments: Change.allCases)
  func `a request after a change on another node gets no reply of a look from before it`(
    change: Change
  ) async throws {
    _ = try await a.map.request("a1")
    let cacher = LateCacher(node: engine.node())
    let map = MultiplexerMap<String, String>(
      id: "values",
      cacher: cacher,
      tagging: { _ in ["all", "a"] },
      clock: clock,
      onKeyFetch: { [origin] in try origin.value($0) }
    )
    async let before = map.request("a1")
    await cacher.gate.arrivals(1)
    origin.set("2")
    try await change.make(on: a, repository)
    #expect(try await a.map.request("a1") == "2")
    async let after = map.request("a1")
    while map.statistics.joins + map.statistics.misses < 2 { await Task.detached {}.value }
    cacher.gate.open()
    _ = try await before
    #expect(try await after == "2")
  }

  @Test(.guarantee(.clearEverywhereOutlastsTrust), arguments: Change.allCases, [false, true])
  func `an update is no answer to requests of a value that was changed on another node`(
    change: Change,
    isOptimistic: Bool
  ) async throws {
    #expect(try await b.map.request("a1") == "1")
    origin.set("2")
    try await change.make(on: a, repository)
    b.cacher.delayCalls(by: .seconds(1))
    async let value = b.map.request("a1")
    await clock.sleepers(1)
    if isOptimistic {
      try await b.map.update("a1", optimistically: { $0 += "!" }, commit: {})
    } else {
      b.map.update("a1") { $0 += "!" }
    }
    b.cacher.delayCalls(by: .zero)
    clock.advance(by: .seconds(1))
    #expect(try await value == "2")
  }

  @Test(.guarantee(.tagRemovalsReachEveryNode))
  func `a value that was stored is removed by its tags, and no fallback`() async throws {
    a.map.store("mine", for: "a1")
    try await a.map.flush()
    #expect(try await b.map.request("a1") == "mine")
    try await repository.clear(tags: ["a"], .shared)
    origin.fail()
    await #expect(throws: Origin.Down.self) { try await b.map.request("a1") }
    await #expect(throws: Origin.Down.self) { try await a.map.request("a1") }
  }

  @Test(.guarantee(.tagRemovalsReachEveryNode))
  func `a clear by tags that failed is made up for before a value is used`() async throws {
    _ = try await b.map.request("a1")
    a.cacher.cutOff()
    await #expect(throws: MuxRepositoryError.self) {
      try await repository.clear(tags: ["a"], .shared)
    }
    origin.set("2")
    a.cacher.reconnect()
    #expect(try await a.map.request("a1") == "2")
    #expect(try await b.map.request("a1") == "2")
  }

  /// A map of another node, and its cacher, which does not refuse anything at first.
  private func refusingMap() -> (RefusingCacher, MultiplexerMap<String, String>) {
    let cacher = RefusingCacher(engine.node(), refusing: "values/x")
    let map = MultiplexerMap(
      id: "values",
      cacher: cacher,
      tagging: { [CacheTag(String($0.prefix(1)))] },
      clock: clock,
      onKeyFetch: { [origin] in try origin.value($0) }
    )
    return (cacher, map)
  }

  @Test func `a clear of tags reaches all entries, even if the removal of a key fails`()
    async throws
  {
    let (cacher, map) = refusingMap()
    _ = try await map.request("a1")
    _ = try await b.map.request("a2")
    cacher.isRefusing = true
    origin.set("2")
    let error = await #expect(throws: CacherError.self) { try await map.clear(tags: ["a"]) }
    #expect(error?.failures["values/a1"] is Broken)
    // The map is not used again.
    #expect(try await b.map.request("a2") == "2")
  }

  @Test(arguments: [false, true])
  func `a refresh reaches all nodes, even if another change fails`(isRemoval: Bool) async throws {
    let (cacher, map) = refusingMap()
    for key in ["a1", "x"] { _ = try await map.request(key) }
    _ = try await b.map.request("a1")
    cacher.isRefusing = true
    if isRemoval {
      await #expect(throws: CacherError.self) { try await map.clear("x") }
    } else {
      map.store("mine", for: "x")
    }
    await #expect(throws: CacherError.self) { try await map.flush() }
    origin.set("2")
    map.refresh("a1")
    // It waits for the refresh.
    await #expect(throws: CacherError.self) { try await map.flush() }
    #expect(try await b.map.request("a1") == "2")
  }

  @Test(.guarantee(.tagRemovalsReachEveryNode)) func `a clear of this node leaves the tier alone`()
    async throws
  {
    _ = try await a.map.request("a1")
    origin.set("2")
    let looks = a.cacher.lookCount
    try await repository.clear(tags: ["a"], .here)
    #expect(a.map.cachedValue("a1") == nil)
    #expect(try await a.map.request("a1") == "1")
    #expect(a.cacher.lookCount == looks + 1)
  }

  @Test(.guarantee(.tagRefreshesReachKnownKeys))
  func `a refresh by tags reaches all nodes for the keys of its node`()
    async throws
  {
    for node in [a, b] { _ = try await node.map.request("a1") }
    for key in ["a2", "b2"] { _ = try await b.map.request(key) }
    clock.advance(by: .seconds(1))
    origin.set("2")
    a.map.refresh(tags: ["a"])
    #expect(try await a.map.request("a1") == "2")
    #expect(try await b.map.request("a1") == "2")
    // Only the other node and the tier have it.
    #expect(try await b.map.request("a2") == "1")
    #expect(try await a.map.request("a2") == "2")
    #expect(try await b.map.request("a2") == "2")
    // Another tag.
    #expect(try await a.map.request("b2") == "1")
  }

  @Test(.guarantee(.clearEverywhereOutlastsTrust))
  func `a clear of tags everywhere waits for a node that does not react`() async throws {
    _ = try await b.map.request("a1")
    b.cacher.cutOff()
    origin.set("2")
    async let cleared: Void = repository.clear(tags: ["a"], .everywhere)
    await clock.sleepers(1)
    #expect(try await b.map.request("a1") == "1")
    clock.advance(by: .seconds(2))
    try await cleared
    #expect(try await b.map.request("a1") == "2")
  }
}

/// A cacher whose replies to looks wait until a gate is open.
private final class LateCacher: ForwardingCacher {
  let node: SharedMemoryNode<String>
  let gate = Gate()

  init(node: SharedMemoryNode<String>) { self.node = node }

  func look(
    for wishes: [String: SharedCache.Wish]
  ) async throws -> [String: SharedCache.Finding<String>] {
    let findings = try await node.look(for: wishes)
    try await gate.wait()
    return findings
  }
}
