import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `An update` {
  let clock = ManualClock()

  private var policy: CachePolicy { CachePolicy(timeToLive: .seconds(60)) }

  @Test(.guarantee(.updateWinsOverFetches), arguments: CacheKind.allCases)
  func `an update changes the value, which keeps its age and its deadline`(
    kind: CacheKind
  ) async throws {
    let origin = Tally()
    let cache = kind.make(policy: policy, clock: clock) { origin.increment() }
    _ = try await cache.request()
    clock.advance(by: .seconds(40))
    #expect(cache.update { $0 += 10 } == 11)
    let response = try await cache.response()
    #expect(response.value == 11)
    #expect(response.age == .seconds(40))
    clock.advance(by: .seconds(20))
    #expect(try await cache.request() == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `an update of a key without a value does nothing`(kind: CacheKind) async throws {
    let gate = Gate()
    let cache = kind.make(policy: policy, clock: clock) {
      try await gate.wait()
      return 1
    }
    let calls = Tally()
    #expect(cache.update { _ in calls.increment() } == nil)
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    #expect(cache.update { _ in calls.increment() } == nil)
    gate.open()
    #expect(try await caller.value == 1)
    #expect(calls.value == 0)
    #expect(cache.cachedValue == 1)
  }

  @Test(.guarantee(.updatesKeepTheAge))
  func `an update is no answer to callers that wait because the value must not be used`()
    async throws
  {
    let (gate, origin) = (Gate(), Tally())
    let cache = Multiplexer<Int>(clock: clock) { _ in
      let value = origin.increment()
      if value > 1 { try await gate.wait() }
      let directives = CacheDirectives(timeToLive: .seconds(1), requiresRevalidation: true)
      return .value(value, directives: directives)
    }
    _ = try await cache.request()
    clock.advance(by: .seconds(1))
    let caller = begin { try await cache.response() }
    await gate.arrivals(1)
    #expect(cache.update { $0 += 10 } == 11)
    gate.open()
    #expect(try await caller.value.value == 2)
  }

  @Test(.guarantee(.updateWinsOverFetches), arguments: CacheKind.allCases)
  func `an update wins over a fetch in flight, whose callers get it`(kind: CacheKind) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .success(2), .success(3)], gate: gate)
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    cache.store(5)
    clock.advance(by: .seconds(60))
    let caller = begin { try await cache.response() }
    await gate.arrivals(1)
    #expect(cache.update { $0 += 1 } == 6)
    let response = try await caller.value
    #expect(response.value == 6)
    #expect(response.age == .seconds(60))
    #expect(response.isStale)
    gate.open()
    // The age of the value is unchanged: the next request fetches.
    #expect(try await cache.request() == 2)
  }

  @Test(.guarantee(.updateWinsOverFetches), arguments: CacheKind.allCases)
  func `an update leaves a refresh to be served`(kind: CacheKind) async throws {
    let origin = Tally()
    let cache = kind.make(policy: policy, clock: clock) { origin.increment() }
    _ = try await cache.request()
    cache.refresh()
    #expect(cache.update { $0 += 10 } == 11)
    #expect(try await cache.request() == 2)
  }

  @Test(
    .guarantee(.updateWinsOverFetches),
    .guarantee(.refreshesReturnFetchedValues),
    arguments: CacheKind.allCases
  )
  func `an update leaves a refresh to be served whose fetch it has cut off`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .success(2)], gate: gate)
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    cache.store(5)
    let refreshed = cache.refresh()
    let caller = begin { try await refreshed.request() }
    await gate.arrivals(1)
    #expect(cache.update { $0 += 1 } == 6)
    gate.open()
    #expect(try await caller.value == 1, "a changed value is as old as before")
    #expect(cache.cachedValue == 6)
    #expect(try await cache.request() == 2)
  }

  @Test(.guarantee(.refreshesReturnFetchedValues), arguments: CacheKind.allCases, [true, false])
  func `an update of any kind does not answer a request of a refresh, which gets the next fetch`(
    kind: CacheKind,
    isOptimistic: Bool
  ) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .success(2), .success(3)], gate: gate)
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    cache.store(5)
    clock.advance(by: .seconds(60))
    let plain = begin { try await cache.request() }
    await gate.arrivals(1)
    let refreshed = cache.refresh()
    let caller = begin { try await refreshed.request() }
    if isOptimistic {
      // The fetch that follows begins before the commit ends.
      try await cache.update(optimistically: { $0 += 1 }, commit: { await gate.arrivals(2) })
    } else {
      cache.update { $0 += 1 }
    }
    #expect(try await plain.value == 6)
    await gate.arrivals(2)
    gate.open()
    #expect(try await caller.value == 2)
    #expect(cache.cachedValue == (isOptimistic ? 3 : 2))
  }

  @Test(arguments: CacheKind.allCases)
  func `an update that throws leaves the value as it is`(kind: CacheKind) async throws {
    let cache = kind.make(policy: policy, clock: clock) { 1 }
    _ = try await cache.request()
    #expect(throws: Broken()) {
      try cache.update { value in
        value = 9
        throw Broken()
      }
    }
    #expect(cache.cachedValue == 1)
    #expect(cache.update { $0 += 1 } == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `an update is published`(kind: CacheKind) async throws {
    let cache = kind.make(policy: policy, clock: clock) { 1 }
    cache.store(1)
    let states = Recorder(cache.subscribe())
    cache.update { $0 = 2 }
    #expect(await states.first(2).map(\.name) == ["loaded 1", "loaded 2"])
  }

  @Test(.guarantee(.updateWinsOverFetches))
  func `an update runs again if the value was replaced meanwhile, and not for other keys`() {
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) { $0 }
    map.store([1: 1, 2: 2])
    let calls = Tally()
    let result = map.update(1) { value in
      let call = calls.increment()
      map.store(7, for: 2)
      if call == 1 { map.store(5, for: 1) }
      value += 10
    }
    #expect(result == 15)
    #expect(calls.value == 2)
    #expect(map.cachedValue(1) == 15)
  }

  @Test func `an update ends if the value is cleared meanwhile`() {
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) { $0 }
    map.store(1, for: 1)
    let calls = Tally()
    let result = map.update(1) { value in
      calls.increment()
      map.clearMemory(1)
      value += 10
    }
    #expect(result == nil)
    #expect(calls.value == 1)
    #expect(map.cachedValue(1) == nil)
  }

  @Test func `an update can update the same key inside, of which both changes stay`() {
    let map = MultiplexerMap<Int, [String]>(policy: policy, clock: clock) { _ in [] }
    map.store([], for: 1)
    let isFirst = Tally()
    map.update(1) { value in
      if isFirst.increment() == 1 { map.update(1) { $0.append("inner") } }
      value.append("outer")
    }
    #expect(map.cachedValue(1) == ["inner", "outer"])
  }

  @Test(.guarantee(.updateWinsOverFetches)) func `an update of many threads loses no change`() async
  {
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) { $0 }
    map.store(0, for: 1)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask { for _ in 0..<200 { map.update(1) { $0 += 1 } } }
      }
    }
    #expect(map.cachedValue(1) == 1600)
  }

  @Test
  func `an update is written by the next flush, with the time at which the value was fetched`()
    async throws
  {
    let cacher = SimpleCacher()
    let map = MultiplexerMap<Int, Int>(policy: policy, cacher: cacher, clock: clock) { $0 }
    _ = try await map.request(1)
    try await map.flush()
    map.update(1) { $0 = 9 }
    try await map.flush()
    #expect(cacher.values == ["1": 9])
  }

  @Test func `an update that costs more than the limit leaves nothing`() {
    let map = MultiplexerMap<Int, [Int]>(capacity: .cost(3) { $0.count }, clock: clock) { _ in [] }
    map.store([1], for: 1)
    #expect(map.update(1) { $0 += [2, 3, 4] } == [1, 2, 3, 4])
    #expect(map.cachedValue(1) == nil)
  }
}
