import Plexus
import PlexusSharedTesting
import PlexusTesting
import TestSupport
import Testing

/// Fallbacks of nodes that share an engine: as those of a cache without one.
@Suite(.fewAtOnce)
struct `Fallbacks with a shared tier` {
  let clock = ManualClock()
  /// The clock of the engine, on which nothing but the waits for other nodes sleeps.
  let engineClock = ManualClock()
  let origin = Origin()
  let engine: SharedMemory<String>

  init() {
    engine = SharedMemory<String>(clock: engineClock)
  }

  /// Lets all values become stale.
  private func passMinute() {
    clock.advance(by: .seconds(60))
    engineClock.advance(by: .seconds(60))
  }

  private func makeNode(_ change: (inout CachePolicy) -> Void = { _ in }) -> SharedNode {
    var policy = CachePolicy()
    policy.timeToLive = .seconds(60)
    policy.storageTimeout = .seconds(5_000_000_000)
    change(&policy)
    return SharedNode(engine, clock: clock, policy: policy, fetch: origin.value)
  }

  /// Returns nodes whose stale value answers: the renewal of the first one fails when its gate opens, and that of the second
  /// one waits for it.
  private func makeRenewing() async throws -> (SharedNode, SharedNode) {
    let (a, b) = (
      makeNode { $0.staleWhileRevalidate = .seconds(600) },
      makeNode { $0.staleWhileRevalidate = .seconds(600) }
    )
    _ = try await a.map.request("k")
    _ = try await b.map.request("k")
    passMinute()
    origin.fail(Broken())
    a.gate.close()
    #expect(try await a.map.request("k") == "1")
    await a.gate.arrivals(2)
    #expect(try await b.map.request("k") == "1")
    await engineClock.sleepers(1)
    return (a, b)
  }

  /// Lets a node wait for the second fetch of another one, until the gate of that one is opened.
  private func wait(
    _ waiting: SharedNode,
    for holder: SharedNode
  ) async -> (Task<String, any Error>, Task<Response<String>, any Error>) {
    holder.gate.close()
    let fetch = Task { try await holder.map.request("k") }
    await holder.gate.arrivals(2)
    let wait = Task { try await waiting.map.response("k") }
    await engineClock.sleepers(1)
    return (fetch, wait)
  }

  @Test(.guarantee(.waitersAnswerWithStaleValues), arguments: [false, true])
  func `a node that waits for a failing fetch answers with its stale value`(
    hasValue: Bool
  ) async throws {
    let (a, b) = (makeNode(), makeNode())
    _ = try await a.map.request("k")
    if hasValue { _ = try await b.map.request("k") }
    passMinute()
    origin.fail()
    let (fetch, waiting) = await wait(b, for: a)
    a.gate.open()
    #expect(try await fetch.value == "1")
    let response = try await waiting.value
    #expect(response.value == "1")
    #expect(response.isStale)
    #expect(response.error is SharedCache.Failure)
    #expect(b.fetchCount == 0)
    // It stays a fallback, for the next failure as well.
    #expect(b.map.cachedValue("k") == "1")
    #expect(try await b.map.request("k") == "1")
  }

  @Test(.guarantee(.staleValuesAnswerDuringFailuresElsewhere))
  func `a stale value answers requests that arrive while a failure elsewhere is noticed`()
    async throws
  {
    let (a, b) = try await makeRenewing()
    b.cacher.delayCalls(by: .seconds(1))
    a.gate.open()
    // The next look of the renewal is on its way.
    while b.cacher.lookCount < 3 { await Task.detached {}.value }
    let response = try await b.map.response("k")
    #expect(response.value == "1")
    #expect(response.isStale)
    b.cacher.delayCalls(by: .zero)
    engineClock.advance(by: .seconds(1))
  }

  @Test(.guarantee(.endedLeasesAreLookedUpAgain), arguments: [false, true])
  func `a request that waits for another node looks again after a change by its own node`(
    isRemoval: Bool
  ) async throws {
    let (a, b) = (makeNode(), makeNode())
    a.gate.close()
    let fetch = Task { try await a.map.request("k") }
    await a.gate.arrivals(1)
    async let waiting = b.map.request("k")
    await engineClock.sleepers(1)
    // It ends the lease of the other node.
    if isRemoval {
      let repository = MuxRepository()
      b.map.register(in: repository)
      try await repository.clearAll(.everywhere)
    } else {
      b.map.refresh("k")
      try await b.map.flush()
    }
    #expect(try await waiting == "1")
    a.gate.open()
    #expect(try await fetch.value == "1")
  }

  enum Change: CaseIterable {
    case refresh, clear, ownClear
  }

  @Test(.guarantee(.clearedValuesAreNoFallback), arguments: Change.allCases)
  func `a fetch that fails after a change has the fallback that the engine still has`(
    change: Change
  ) async throws {
    let (a, b) = (makeNode(), makeNode())
    _ = try await a.map.request("k")
    passMinute()
    origin.fail()
    a.gate.close()
    let request = Task { try await a.map.response("k") }
    await a.gate.arrivals(2)
    switch change {
    case .refresh:
      b.map.refresh("k")
      try await b.map.flush()
    case .clear: try await b.map.clear("k")
    case .ownClear: try await a.map.clear("k")
    }
    a.gate.open()
    let result = await request.result
    if change == .refresh {
      #expect(try result.get().value == "1")
      #expect(try result.get().isStale)
    } else {
      #expect(throws: Origin.Down.self) { try result.get() }
    }
  }

  @Test(.guarantee(.updatesKeepTheAge), arguments: [false, true])
  func `an update of a value that stood in for a failed fetch does not undo a refresh`(
    hasValue: Bool
  ) async throws {
    let (a, b, c) = (makeNode(), makeNode(), makeNode())
    _ = try await a.map.request("k")
    if hasValue { _ = try await b.map.request("k") }
    a.map.refresh("k")
    try await a.map.flush()
    origin.fail()
    #expect(try await b.map.request("k") == "1")
    b.map.update("k") { $0 += "!" }
    try await b.map.flush()
    origin.set("2")
    #expect(try await c.map.request("k") == "2")
  }

  @Test(.guarantee(.policyJudgesOtherProcesses))
  func `the policy judges the failure of another node`() async throws {
    let (a, b) = (makeNode(), makeNode { $0.usesCachedValue = { _ in false } })
    _ = try await a.map.request("k")
    _ = try await b.map.request("k")
    passMinute()
    origin.fail()
    let (fetch, waiting) = await wait(b, for: a)
    a.gate.open()
    _ = await fetch.result
    await #expect(throws: SharedCache.Failure.self) { try await waiting.value }
  }

  @Test(.guarantee(.clearedValuesAreNoFallback))
  func `a value that is cleared during the wait is no answer`() async throws {
    let (a, b, c) = (makeNode(), makeNode(), makeNode())
    _ = try await a.map.request("k")
    _ = try await b.map.request("k")
    passMinute()
    origin.fail()
    a.gate.close()
    let fetch = Task { try await a.map.request("k") }
    await a.gate.arrivals(2)
    let waiting = Task { try await b.map.request("k") }
    await engineClock.sleepers(1)
    try await c.map.clear("k")
    a.gate.open()
    _ = await fetch.result
    await #expect(throws: (any Error).self) { try await waiting.value }
    #expect(b.map.cachedValue("k") == nil)
  }

  @Test func `a stale value answers requests after the fetch of another node has failed`()
    async throws
  {
    let (a, b) = try await makeRenewing()
    #expect(try await b.map.request("k") == "1")
    b.gate.close()
    a.gate.open()
    await a.fetches.first(2)
    #expect(try await b.map.request("k") == "1")
    #expect(try await a.map.request("k") == "1")
    b.gate.open()
  }

  @Test(.guarantee(.softTimeoutAnswersWaitingProcesses))
  func `the soft timeout answers a node that waits for the fetch of another one`()
    async throws
  {
    let (a, b) = (makeNode(), makeNode { $0.softTimeout = .seconds(1) })
    _ = try await a.map.request("k")
    _ = try await b.map.request("k")
    passMinute()
    a.gate.close()
    let fetch = Task { try await a.map.request("k") }
    await a.gate.arrivals(2)
    // Its copy has to be looked up, which finds the lease.
    b.cacher.reconnect()
    let waiting = Task { try await b.map.response("k") }
    await engineClock.sleepers(1)
    // The soft timeout begins at any time during the wait.
    let time = Task.detached { [clock] in
      while !Task.isCancelled { clock.advance(by: .seconds(1)) }
    }
    let response = try await waiting.value
    time.cancel()
    #expect(response.value == "1")
    #expect(response.isStale)
    a.gate.open()
    _ = await fetch.result
  }

  @Test func `several keys that wait for failing fetches are answered with stale values`()
    async throws
  {
    let keys = ["a", "b", "c"]
    let a = makeNode()
    let bulk = MultiplexerMap<String, String>.bulk(
      id: "values",
      policy: CachePolicy(timeToLive: .seconds(60)),
      cacher: engine.node(),
      clock: clock
    ) { _ in throw Origin.Down() }
    for key in keys { _ = try await a.map.request(key) }
    passMinute()
    origin.fail()
    a.gate.close()
    let fetches = keys.map { key in Task { try await a.map.request(key) } }
    await a.gate.arrivals(6)
    let waiting = Task { await bulk.request(keys) }
    await engineClock.sleepers(1)
    a.gate.open()
    for fetch in fetches { _ = await fetch.result }
    #expect(try await waiting.value.mapValues { try $0.get() } == ["a": "1", "b": "1", "c": "1"])
  }

  @Test(.guarantee(.clearsElsewhereEndFallbacks), arguments: [false, true])
  func `a fallback that is cleared elsewhere is none any longer`(hasValue: Bool) async throws {
    let (a, b) = (makeNode(), makeNode())
    _ = try await a.map.request("k")
    // Otherwise, the fallback is the entry of the engine, whose time is not over.
    if hasValue { _ = try await b.map.request("k") }
    b.map.refresh("k")
    try await b.map.flush()
    origin.fail()
    #expect(try await b.map.request("k") == "1")
    b.cacher.delayAnnouncements()
    try await a.map.clear("k")
    b.cacher.hearAnnouncements()
    b.cacher.cutOff()
    await #expect(throws: Origin.Down.self) { try await b.map.request("k") }
  }
}
