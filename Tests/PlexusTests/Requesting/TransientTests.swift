import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A value that must not be kept` {
  let clock = ManualClock()
  let cacher = ControlledCacher<Int>()

  private var patient: CachePolicy {
    var policy = CachePolicy.readingFirst(staleFor: .seconds(1_000))
    policy.usesCachedValue = { _ in true }
    return policy
  }

  @Test(arguments: CacheKind.allCases)
  func `a transient value is for its callers and answers no other request`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .success(2)], gate: gate)
    let cache = kind.makeInformed(policy: patient, clock: clock) { _ in
      .transient(try await origin.fetch())
    }
    let callers = (0..<3).map { _ in begin { try await cache.response() } }
    await gate.arrivals(1)
    gate.open()
    for caller in callers {
      let response = try await caller.value
      #expect(response.value == 1)
      #expect(response.source == .fetch)
      #expect(!response.isStale)
    }
    #expect(cache.cachedValue == nil)
    #expect(try await cache.request() == 2)
    #expect(cache.statistics.counts == CacheStatistics(misses: 2, joins: 2, fetches: 2))
  }

  @Test(arguments: CacheKind.allCases)
  func `a transient value is never used after a failure`(kind: CacheKind) async throws {
    let isAway = Gate()
    let cache = kind.makeInformed(policy: patient, clock: clock) { (context: FetchContext<Int>) in
      #expect(context.previousValue == nil)
      if isAway.isOpen { throw Offline() }
      return .transient(1)
    }
    _ = try await cache.request()
    isAway.open()
    await #expect(throws: Offline.self) { try await cache.request() }
  }

  @Test(arguments: CacheKind.allCases)
  func `a transient value is published to subscribers, and then there is none`(
    kind: CacheKind
  ) async throws {
    let cache = kind.makeInformed(clock: clock) { _ in .transient(1) }
    let states = Recorder(cache.subscribe())
    _ = await states.first(1)
    _ = try await cache.request()
    #expect(await states.first(4).map(\.name) == ["unknown", "loading", "loaded 1", "unknown"])
    let late = Recorder(cache.subscribe())
    #expect(await late.first(1).map(\.name) == ["unknown"])
  }

  @Test(arguments: CacheKind.allCases)
  func `a transient value replaces the previous one, which does not return`(
    kind: CacheKind
  ) async throws {
    let fetches = Tally()
    let cache = kind.makeInformed(storedIn: cacher, policy: patient, clock: clock) { _ in
      switch fetches.increment() {
      case 1: return .value(1, timeToLive: .seconds(10), validator: "tag")
      case 2: return .transient(2)
      default: throw Offline()
      }
    }
    #expect(try await cache.request() == 1)
    #expect(try await cache.refresh().request() == 2)
    #expect(cache.cachedValue == nil)
    await #expect(throws: Offline.self) { try await cache.request() }
    try await cache.flush()
    #expect(cacher.value() == nil)
    #expect(cacher.count(of: .store) == 0)
  }

  @Test(arguments: CacheKind.allCases)
  func `a transient value is never written, and the stored copy before it is removed by itself`(
    kind: CacheKind
  ) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(100_000))
    let gate = cacher.hold(.remove)
    let cache = kind.makeInformed(storedIn: cacher, policy: patient, clock: clock) { context in
      #expect(context.previousValue == 7 || context.previousValue == nil)
      return .transient(1)
    }
    #expect(try await cache.request() == 1)
    await gate.arrivals(1)
    #expect(cacher.value() == 7)
    #expect(try await cache.response().source == .fetch, "It is not used while it is there")
    gate.open()
    try await cache.flush()
    cache.clearMemory()
    try await cache.flush()
    #expect(cacher.value() == nil)
    #expect(cacher.count(of: .store) == 0)
  }

  @Test(arguments: CacheKind.allCases)
  func `a transient value lets no copy be used that could not be removed`(
    kind: CacheKind
  ) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(100_000))
    cacher.fail(.remove)
    let fetches = Tally()
    let cache = kind.makeInformed(storedIn: cacher, policy: patient, clock: clock) { _ in
      if fetches.increment() > 1 { throw Offline() }
      return .transient(1)
    }
    _ = try await cache.request()
    await #expect(throws: CacherError.self) { try await cache.flush() }
    await #expect(throws: Offline.self) { try await cache.request() }
    cacher.mend()
    try await cache.flush()
    #expect(cacher.value() == nil)
  }

  @Test(arguments: CacheKind.allCases)
  func `a transient value is followed by one that is kept and written`(kind: CacheKind) async throws
  {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(100_000))
    let fetches = Tally()
    let cache = kind.makeInformed(storedIn: cacher, policy: patient, clock: clock) { _ in
      fetches.increment() == 1 ? .transient(1) : .value(2)
    }
    #expect(try await cache.request() == 1)
    #expect(try await cache.request() == 2)
    #expect(try await cache.response().source == .memory)
    try await cache.flush()
    #expect(cacher.value() == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `a transient value is unknown to the fetch of a refresh that came meanwhile`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let contexts = RecordedChannel<FetchContext<Int>>()
    let cache = kind.makeInformed(policy: patient, clock: clock) { (context: FetchContext<Int>) in
      contexts.send(context)
      try await gate.wait()
      return .transient(context.attempt)
    }
    let states = Recorder(cache.subscribe())
    _ = await states.first(1)
    let early = begin { try await cache.request() }
    await gate.arrivals(1)
    let refreshed = cache.refresh()
    let late = begin { try await refreshed.request() }
    gate.admit(1)
    #expect(try await early.value == 1)
    await gate.arrivals(2)
    #expect(cache.cachedValue == nil)
    gate.open()
    #expect(try await late.value == 1)
    #expect(await contexts.recorder.first(2).allSatisfy { $0.previousValue == nil })
    let names = await states.first(6).map(\.name)
    #expect(names == ["unknown", "loading", "loaded 1", "loading", "loaded 1", "unknown"])
  }

  @Test(arguments: CacheKind.allCases)
  func `a transient value of a detached fetch changes nothing`(kind: CacheKind) async throws {
    let gate = Gate()
    let cache = kind.makeInformed(storedIn: cacher, policy: patient, clock: clock) { _ in
      try await gate.wait()
      return .transient(1)
    }
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    cache.store(9)
    #expect(try await caller.value == 9)
    gate.open()
    try await cache.flush()
    #expect(cache.cachedValue == 9)
    #expect(cacher.value() == 9)
  }

  @Test func `a transient value uses no memory, and frees that of the one before it`() async throws
  {
    let fetches = Tally()
    let map = MultiplexerMap<Int, Int>(capacity: .count(2), cacher: cacher, clock: clock) {
      (key: Int, _: FetchContext<Int>) in
      fetches.increment()
      return key < 10 ? .transient(key) : .value(key)
    }
    map.store(0, for: 0)
    map.store(11, for: 11)
    #expect(try await map.refresh(0).request(0) == 0)
    for key in 0..<10 { #expect(try await map.request(key) == key) }
    #expect(map.cachedValue(11) == 11)
    #expect(try await map.request(12) == 12)
    #expect(map.statistics.evictions == 0)
    #expect(map.cachedValue(11) == 11)
    #expect(map.cachedValue(12) == 12)
    try await map.flush()
    #expect(Set(cacher.entries.keys) == ["11", "12"])
  }

  @Test
  func `a transient value frees the room of the previous one though the next fetch is in flight`()
    async throws
  {
    let gate = Gate()
    let map = MultiplexerMap<Int, Int>(capacity: .count(1), clock: clock) {
      (_: Int, _: FetchContext<Int>) in
      try await gate.wait()
      return .transient(1)
    }
    map.store(0, for: 0)
    let early = begin { [map] in try await map.refresh(0).request(0) }
    await gate.arrivals(1)
    let late = begin { [map] in try await map.refresh(0).request(0) }
    gate.admit(1)
    #expect(try await early.value == 1)
    await gate.arrivals(2)
    map.store(7, for: 7)
    #expect(map.statistics.evictions == 0)
    gate.open()
    #expect(try await late.value == 1)
    #expect(map.cachedValue(7) == 7)
  }
}
