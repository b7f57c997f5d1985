import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Many keys of a map` {
  let clock = ManualClock()

  private func map(
    _ policy: CachePolicy = CachePolicy(timeToLive: .seconds(60))
  ) -> MultiplexerMap<
    Int, Int
  > {
    MultiplexerMap<Int, Int>(policy: policy, clock: clock) { $0 * 10 }
  }

  // MARK: - Counting

  @Test(.guarantee(.countAndKeysCoverMemory))
  func `keys are counted while they have a value, fresh or stale`() async throws {
    let gate = Gate()
    let map = MultiplexerMap<Int, Int>(policy: CachePolicy(timeToLive: .seconds(60)), clock: clock)
    {
      key in
      if key == 9 { throw Broken() }
      if key == 8 { try await gate.wait() }
      return key
    }
    #expect(map.count == 0)
    #expect(map.keys.isEmpty)
    _ = try await map.request(1)
    map.store([2: 2, 3: 3])
    _ = try? await map.request(9)
    let caller = begin { try await map.request(8) }
    await gate.arrivals(1)
    #expect(map.count == 3)
    #expect(map.keys.sorted() == [1, 2, 3])
    clock.advance(by: .seconds(100))
    #expect(map.count == 3)
    gate.open()
    _ = try await caller.value
    #expect(map.count == 4)
    map.clearMemory(8)
    try await map.clear(1)
    #expect(map.keys.sorted() == [2, 3])
    #expect(map.count == 2)
    map.clearMemory()
    #expect(map.count == 0)
  }

  @Test(.guarantee(.countAndKeysCoverMemory), arguments: 0..<20)
  func `keys are counted as they are listed, whatever happens`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let limit = seed % 2 == 0 ? CacheCapacity<Int>.count(6) : .unbounded
    let map = MultiplexerMap<Int, Int>(capacity: limit, clock: clock) { key in
      if key % 5 == 0 { throw Broken() }
      return key
    }
    for _ in 0..<300 {
      let key = Int.random(in: 0..<12, using: &random)
      switch Int.random(in: 0..<9, using: &random) {
      case 0, 1: map.store(key, for: key)
      case 2, 3: _ = try? await map.request(key)
      case 4: map.update(key) { $0 += 1 }
      case 5: map.refresh(key)
      case 6: try await map.clear(key)
      case 7: map.clearMemory(key)
      default: if key == 0 { map.clearMemory() } else { try await map.clear(where: { $0 == key }) }
      }
      try #require(map.count == map.keys.count)
      try #require(map.keys.allSatisfy { map.cachedValue($0) != nil })
    }
  }

  // MARK: - Prefetching

  @Test(.guarantee(.prefetchRemembersNoFailure))
  func `keys are prefetched without a caller, unless they are fresh or being fetched`()
    async throws
  {
    let origin = BulkOrigin()
    let map = origin.makeMap(clock: clock)
    map.store(7, for: 1)
    let caller = begin { try await map.request(2) }
    await origin.gate.arrivals(1)
    map.prefetch([1, 2, 3, 4, 3])
    await origin.gate.arrivals(2)
    #expect(origin.calls == [[2], [3, 4]])
    origin.gate.open()
    _ = try await caller.value
    #expect(try await map.request(3) == 203)
    #expect(origin.calls.count == 2)
  }

  @Test(.guarantee(.prefetchRemembersNoFailure))
  func `keys are prefetched with no effect on the hit rate`() async throws {
    let map = map()
    let states = Recorder(map.subscribe(to: 1, bufferingPolicy: .unbounded))
    map.prefetch([1, 2])
    _ = await states.first(3)
    map.prefetch([1, 2])
    let statistics = map.statistics
    #expect(statistics.fetches == 2)
    #expect(statistics.hits + statistics.staleHits + statistics.misses + statistics.joins == 0)
  }

  @Test(.guarantee(.prefetchRemembersNoFailure))
  func `keys are prefetched to the end, though a caller that has joined leaves`() async throws {
    var policy = CachePolicy(timeToLive: .seconds(60))
    policy.whenUnobserved = .cancel
    let gate = Gate()
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) { key in
      try await gate.wait()
      return key
    }
    let states = Recorder(map.subscribe(to: 1, bufferingPolicy: .unbounded))
    map.prefetch([1])
    await gate.arrivals(1)
    let caller = begin { try await map.request(1) }
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    gate.open()
    #expect(await states.first(3).map(\.name) == ["unknown", "loading", "loaded 1"])
  }

  @Test(.guarantee(.prefetchRemembersNoFailure), arguments: CacheKind.allCases)
  func `keys are prefetched without their failure being remembered`(kind: CacheKind) async throws {
    var policy = CachePolicy(timeToLive: .seconds(60))
    policy.failureTimeToLive = .seconds(100)
    let origin = ScriptedFetcher<Int>([.failure(Broken()), .success(2)])
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    let states = Recorder(cache.subscribe())
    cache.prefetch()
    #expect(await states.first(3).map(\.name) == ["unknown", "loading", "failed Broken"])
    #expect(try await cache.request() == 2)
  }

  // MARK: - Commands

  @Test(.guarantee(.keysCanBeSelected)) func `keys are refreshed by name, or by a condition`()
    async throws
  {
    let origin = Tally()
    let map = MultiplexerMap<Int, Int>(clock: clock) { _ in origin.increment() }
    map.store([1: -1, 2: -2, 3: -3, 4: -4])
    map.refresh([1, 2, 9])
    map.refresh(where: { $0 == 3 })
    #expect(try await map.request(1) == 1)
    #expect(try await map.request(2) == 2)
    #expect(try await map.request(3) == 3)
    #expect(try await map.request(4) == -4)
  }

  @Test func `keys that are refreshed are answered with what was fetched later`() async throws {
    let gate = Gate()
    let origin = Tally()
    let map = MultiplexerMap<Int, Int>(clock: clock) { _ in
      let number = origin.increment()
      if number == 1 { try await gate.wait() }
      return number
    }
    let early = begin { try await map.request(1) }
    await gate.arrivals(1)
    let refreshed = map.refresh([1, 2])
    let late = begin { try await refreshed.request(1) }
    gate.open()
    #expect(try await early.value == 1)
    #expect(try await late.value == 2)
  }

  @Test(.guarantee(.keysCanBeSelected))
  func `keys that are being fetched are refreshed by a condition, too`() async throws {
    let gate = Gate()
    let origin = Tally()
    let map = MultiplexerMap<Int, Int>(clock: clock) { key in
      let number = origin.increment()
      if number == 1 { try await gate.wait() }
      return number
    }
    map.store(-2, for: 2)
    let early = begin { try await map.request(1) }
    await gate.arrivals(1)
    let asked = Guarded<Set<Int>>([])
    let refreshed = map.refresh { key in
      asked.withLock { _ = $0.insert(key) }
      return key == 1
    }
    #expect(asked.withLock { $0 } == [1, 2])
    let late = begin { try await refreshed.request(1) }
    gate.open()
    #expect(try await early.value == 1)
    #expect(try await late.value == 2)
    #expect(try await map.request(2) == -2)
  }

  @Test(.guarantee(.keysCanBeSelected), arguments: ["keys", "condition", "tags"])
  func `a refresh of no keys keeps the requirements of the refreshes before`(
    command: String
  ) async throws {
    let gate = Gate()
    let map = MultiplexerMap<Int, Int>(
      tagging: { _ in ["all"] },
      clock: clock,
      onKeyFetch: { key in
        try await gate.wait()
        return key
      }
    )
    map.store(-1, for: 1)
    let refreshed = map.refresh(1)
    let early = begin { try await refreshed.request(1) }
    await gate.arrivals(1)
    #expect(try await map.request(1) == -1)
    let nothing =
      switch command {
      case "keys": map.refresh([])
      case "condition": map.refresh { _ in false }
      default: map.refresh(tags: ["none"])
      }
    let late = begin { try await nothing.request(1) }
    gate.open()
    #expect(try await early.value == 1)
    #expect(try await late.value == 1)
  }

  @Test(.guarantee(.keysCanBeSelected))
  func `keys are cleared by name, or by a condition, with their stored copies`() async throws {
    let cacher = SimpleCacher()
    let map = MultiplexerMap<Int, Int>(cacher: cacher, clock: clock) { $0 }
    map.store([1: 1, 2: 2, 3: 3, 4: 4])
    try await map.flush()
    try await map.clear([1, 2])
    #expect(cacher.values == ["3": 3, "4": 4])
    #expect(map.keys.sorted() == [3, 4])
    try await map.clear(where: { $0 > 3 })
    #expect(cacher.values == ["3": 3])
    #expect(map.keys == [3])
  }

  @Test(.guarantee(.keysCanBeSelected))
  func `keys are removed before a clear suspends, with fetches in flight`() async throws {
    let gate = Gate()
    let map = MultiplexerMap<Int, Int>(clock: clock) { key in
      try await gate.wait()
      return key
    }
    map.store(2, for: 2)
    let caller = begin { try await map.request(1) }
    await gate.arrivals(1)
    try await map.clear(where: { _ in true })
    #expect(map.count == 0)
    gate.open()
    #expect(try await caller.value == 1)
    #expect(map.cachedValue(1) == nil)
  }

  @Test func `keys that cannot be removed are named`() async throws {
    let map = MultiplexerMap<Int, Int>(cacher: SimpleCacher(failure: Broken()), clock: clock) { $0 }
    map.store([1: 1, 2: 2, 3: 3])
    let error = await #expect(throws: CacherError.self) { try await map.clear([1, 2]) }
    #expect(error?.keys == ["1", "2"])
  }

  @Test(.guarantee(.keysCanBeSelected)) func `a condition that chooses keys can use the map`()
    async throws
  {
    let map = map()
    map.store([1: 1, 2: 2])
    map.refresh(where: { key in map.cachedValue(key) == 1 })
    try await map.clear(where: { key in map.cachedValue(key) == 2 })
    #expect(map.keys == [1])
    #expect(try await map.request(1) == 10)
  }

  @Test func `the values of other keys stay when memory is cleared of one`() async throws {
    let cacher = SimpleCacher()
    var policy = CachePolicy()
    policy.cacherRead = .beforeFetch
    let map = MultiplexerMap<Int, Int>(policy: policy, cacher: cacher, clock: clock) { _ in 0 }
    map.store([1: 1, 2: 2])
    map.clearMemory(1)
    #expect(map.cachedValue(1) == nil)
    #expect(map.cachedValue(2) == 2)
    // Unwritten changes are not lost.
    #expect(try await map.request(1) == 1)
  }

  @Test func `keys keep their fetch when memory is cleared of one of them`() async throws {
    let gate = Gate()
    let map = MultiplexerMap<Int, Int>(clock: clock) { key in
      try await gate.wait()
      return key
    }
    let caller = begin { try await map.request(1) }
    await gate.arrivals(1)
    map.clearMemory(1)
    gate.open()
    #expect(try await caller.value == 1)
    #expect(map.cachedValue(1) == 1)
  }
}
