import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Clearing` {
  let gate = Gate()

  private func counting(
    _ kind: CacheKind,
    policy: CachePolicy = CachePolicy()
  ) -> CacheUnderTest<Int> {
    let tally = Tally()
    return kind.make(policy: policy) { [gate] in
      let number = tally.increment()
      try await gate.wait()
      return number
    }
  }

  @Test(arguments: CacheKind.allCases)
  func `clearing removes the value, and the next request fetches again`(
    kind: CacheKind
  ) async throws {
    gate.open()
    let cache = counting(kind)
    _ = try await cache.request()
    try await cache.clear()
    #expect(cache.cachedValue == nil)
    #expect(try await cache.request() == 2)
  }

  @Test(
    .guarantee(.lateResultsHaveNoEffect),
    .guarantee(.clearDetachesTheFetch),
    arguments: CacheKind.allCases
  )
  func `clearing during a fetch leaves the callers its result, which is stored nowhere`(
    kind: CacheKind
  ) async throws {
    let cache = counting(kind)
    let early = begin { try await cache.request() }
    let joiner = begin { try await cache.request() }
    await gate.arrivals(1)
    try await cache.clear()
    gate.admit(1)
    #expect(try await early.value == 1)
    #expect(try await joiner.value == 1)
    #expect(cache.cachedValue == nil)
    gate.admit(1)
    #expect(try await cache.request() == 2)
  }

  @Test(.guarantee(.clearDetachesTheFetch), arguments: CacheKind.allCases)
  func `clearing makes a request fetch again while the old fetch runs, whichever ends first`(
    kind: CacheKind
  ) async throws {
    let first = Gate()
    let second = Gate()
    let tally = Tally()
    let cache = kind.make {
      let number = tally.increment()
      try await (number == 1 ? first : second).wait()
      return number
    }
    let early = begin { try await cache.request() }
    await first.arrivals(1)
    try await cache.clear()
    let late = begin { try await cache.request() }
    await second.arrivals(1)
    second.open()
    #expect(try await late.value == 2)
    #expect(cache.cachedValue == 2)
    first.open()
    #expect(try await early.value == 1)
    #expect(cache.cachedValue == 2, "An older result never replaces a newer one")
    #expect(try await cache.request() == 2)
  }

  @Test(.guarantee(.clearDetachesTheFetch), arguments: CacheKind.allCases)
  func `clearing publishes unknown, and nothing of the detached fetch`(
    kind: CacheKind
  ) async throws {
    let cache = counting(kind)
    let states = Recorder(cache.subscribe())
    let early = begin { try await cache.request() }
    await gate.arrivals(1)
    // Unread states are skipped after a clear.
    _ = await states.first(2)
    try await cache.clear()
    gate.admit(1)
    _ = try await early.value
    gate.admit(1)
    _ = try await cache.request()
    #expect(
      await states.first(5).map(\.name)
        == ["unknown", "loading", "unknown", "loading", "loaded 2"]
    )
  }

  @Test(arguments: CacheKind.allCases)
  func `clearing loses no caller of a fetch that has not begun, and stores nothing of it`(
    kind: CacheKind
  ) async throws {
    let cache = counting(kind)
    let early = begin { try await cache.request() }
    await gate.arrivals(1)
    let refreshed = cache.refresh()
    let late = begin { try await refreshed.request() }
    try await cache.clear()
    await gate.arrivals(2)
    gate.admit(2)
    #expect(try await early.value == 1)
    #expect(try await late.value == 2)
    #expect(cache.cachedValue == nil)
    gate.admit(1)
    #expect(try await cache.request() == 3)
  }

  @Test(arguments: CacheKind.allCases)
  func `clearing does not begin a fetch that was only queued and has no callers`(
    kind: CacheKind
  ) async throws {
    let cache = counting(kind)
    let early = begin { try await cache.request() }
    await gate.arrivals(1)
    cache.refresh()
    try await cache.clear()
    gate.open()
    _ = try await early.value
    #expect(cache.statistics.fetches == 1)
  }

  @Test(arguments: CacheKind.allCases)
  func `clearing cancels a fetch without callers if the policy is to cancel`(
    kind: CacheKind
  ) async throws {
    var policy = CachePolicy()
    policy.whenUnobserved = .cancel
    let cache = counting(kind, policy: policy)
    let early = begin { try await cache.request() }
    await gate.arrivals(1)
    try await cache.clear()
    #expect(gate.waiterCount == 1, "Somebody waits for it")
    early.cancel()
    await #expect(throws: CancellationError.self) { try await early.value }
    #expect(gate.waiterCount == 0)

    gate.admit(1)
    _ = try await cache.request()
    cache.refresh()
    let second = begin { try await cache.request() }
    await gate.arrivals(3)
    cache.refresh()
    gate.admit(1)
    _ = try await second.value
    await gate.arrivals(4)
    try await cache.clear()
    #expect(gate.waiterCount == 0, "Nobody waits for what the last refresh has begun")
  }

  @Test(arguments: CacheKind.allCases)
  func `clearing memory removes the value, and keeps a fetch in flight`(
    kind: CacheKind
  ) async throws {
    let cache = counting(kind)
    gate.admit(1)
    _ = try await cache.request()
    cache.clearMemory()
    #expect(cache.cachedValue == nil)

    let caller = begin { try await cache.request() }
    await gate.arrivals(2)
    let states = Recorder(cache.subscribe())
    cache.clearMemory()
    gate.admit(1)
    #expect(try await caller.value == 2)
    #expect(cache.cachedValue == 2)
    #expect(
      await states.first(4).map(\.name) == ["loading", "unknown", "loading", "loaded 2"]
    )
  }

  @Test(arguments: CacheKind.allCases)
  func `clearing memory while a fetch finds nothing changed keeps the value of that question`(
    kind: CacheKind
  ) async throws {
    let cache = kind.makeInformed { [gate] (context: FetchContext<String>) in
      guard context.previousValue != nil else { return .value("a", validator: "tag") }
      try await gate.wait()
      return .notModified()
    }
    _ = try await cache.request()
    let refreshed = cache.refresh()
    let caller = begin { try await refreshed.request() }
    await gate.arrivals(1)
    cache.clearMemory()
    gate.open()
    #expect(try await caller.value == "a")
    #expect(cache.cachedValue == "a")
  }

  @Test func `clearing one key leaves the others alone`() async throws {
    let tally = Tally()
    let map = MultiplexerMap<String, Int> { _ in tally.increment() }
    _ = try await map.request("a")
    _ = try await map.request("b")
    try await map.clear("a")
    #expect(map.cachedValue("a") == nil)
    #expect(map.cachedValue("b") == 2)
    #expect(try await map.request("a") == 3)
  }

  @Test func `clearing all keys cuts every fetch off`() async throws {
    let map = MultiplexerMap<Int, Int> { [gate] key in
      try await gate.wait()
      return key
    }
    let callers = (0..<50).map { key in begin { try await map.request(key) } }
    for key in 50..<100 { map.store(key, for: key) }
    await gate.arrivals(50)
    try await map.clear()
    gate.open()
    for (key, caller) in callers.enumerated() { #expect(try await caller.value == key) }
    #expect((0..<100).allSatisfy { map.cachedValue($0) == nil })
  }
}

@Suite(.fewAtOnce) struct `Storing` {
  @Test(arguments: CacheKind.allCases)
  func `storing a value makes it as fresh as one that was just fetched`(
    kind: CacheKind
  ) async throws {
    let clock = ManualClock()
    let cache = kind.make(clock: clock) { 1 }
    cache.store(7)
    clock.advance(by: .seconds(30 * 60 - 1))
    let response = try await cache.response()
    #expect(response.value == 7)
    #expect(response.source == .memory)
    #expect(response.age == .seconds(30 * 60 - 1))
    clock.advance(by: .seconds(1))
    #expect(try await cache.request() == 1)
  }

  @Test(
    .guarantee(.storedValuesWinOverFetches),
    arguments: CacheKind.allCases,
    [CachePolicy.UnobservedFetch.finishAndStore, .cancel]
  )
  func `storing a value wins over fetches in flight and queued, whose callers get it`(
    kind: CacheKind,
    whenUnobserved: CachePolicy.UnobservedFetch
  ) async throws {
    let gate = Gate()
    var policy = CachePolicy()
    policy.whenUnobserved = whenUnobserved
    let ended = RecordedChannel<Bool>()
    let cache = kind.make(policy: policy) {
      try? await gate.wait()
      ended.send(Task.isCancelled)
      return 1
    }
    let early = begin { try await cache.request() }
    await gate.arrivals(1)
    let refreshed = cache.refresh()
    let late = begin { try await refreshed.request() }
    let states = Recorder(cache.subscribe())
    cache.store(7)
    #expect(try await early.value == 7)
    #expect(try await late.value == 7)
    gate.open()
    #expect(await ended.recorder.first(1) == [whenUnobserved == .cancel])
    #expect(try await cache.request() == 7)
    #expect(await states.first(2).map(\.name) == ["loading", "loaded 7"])
    #expect(cache.statistics.fetches == 1)
  }

  @Test(arguments: CacheKind.allCases)
  func `storing a value drops the directives of the last fetched one`(
    kind: CacheKind
  ) async throws {
    let contexts = RecordedChannel<FetchContext<String>>()
    let cache = kind.makeInformed { (context: FetchContext<String>) in
      contexts.send(context)
      return .value("a", timeToLive: .seconds(1), validator: "tag")
    }
    _ = try await cache.request()
    cache.store("b")
    _ = try await cache.refresh().request()
    let second = await contexts.recorder.first(2).last
    #expect(second?.previousValue == "b")
    #expect(second?.validator == nil)
  }
}
