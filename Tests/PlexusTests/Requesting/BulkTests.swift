import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A request of several keys` {
  let clock = ManualClock()
  let origin = BulkOrigin()

  @Test(.guarantee(.severalKeysShareOneCall))
  func `a request of several keys fetches all that is missing with one call, and nothing else`()
    async throws
  {
    origin.gate.open()
    let map = origin.makeMap(clock: clock)
    map.store(7, for: 1)
    #expect(outcomes(await map.request([1, 2, 3, 2, 3])) == [1: "7", 2: "102", 3: "103"])
    #expect(origin.calls == [[2, 3]])
    #expect(map.statistics.counts == CacheStatistics(hits: 1, misses: 2, fetches: 1))
    #expect(outcomes(await map.request([3, 1, 2])) == [1: "7", 2: "102", 3: "103"])
    #expect(origin.calls.count == 1)
    #expect(try await map.response(2).source == .memory)
  }

  @Test func `a request of no keys, or only of keys that are fresh, fetches nothing`() async {
    let map = origin.makeMap(clock: clock)
    #expect(await map.request([]).isEmpty)
    map.store(7, for: 1)
    #expect(outcomes(await map.request([1])) == [1: "7"])
    #expect(origin.calls.isEmpty)
    #expect(map.statistics.counts == CacheStatistics(hits: 1))
  }

  @Test func `a request of several keys takes any collection of keys`() async {
    origin.gate.open()
    let map = origin.makeMap(clock: clock)
    #expect(await map.request(Set([1, 2])).count == 2)
    #expect(await map.request(1...4).count == 4)
    #expect(await map.request([5: "a", 6: "b"].keys).count == 2)
    #expect(origin.calls == [[1, 2], [3, 4], [5, 6]])
  }

  @Test(.guarantee(.severalKeysShareOneCall))
  func `a request of several keys joins fetches in flight, of single keys and of several`()
    async throws
  {
    let map = origin.makeMap(clock: clock)
    let single = begin { try await map.request(1) }
    await origin.gate.arrivals(1)
    let first = begin { await map.request([1, 2, 3]) }
    await origin.gate.arrivals(2)
    let second = begin { await map.request([2, 3, 4]) }
    await origin.gate.arrivals(3)
    let late = begin { try await map.request(3) }
    origin.gate.open()
    #expect(try await single.value == 101)
    #expect(outcomes(try await first.value) == [1: "101", 2: "202", 3: "203"])
    // A single key is fetched alone.
    #expect(outcomes(try await second.value) == [2: "202", 3: "203", 4: "304"])
    #expect(try await late.value == 203)
    #expect(origin.calls == [[1], [2, 3], [4]])
    #expect(map.statistics.counts == CacheStatistics(misses: 4, joins: 4, fetches: 3))
  }

  @Test(.guarantee(.severalKeysShareOneCall))
  func `a request of several keys gives a key that got no result an error of its own`() async throws
  {
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock) { keys in
      Dictionary(uniqueKeysWithValues: keys.filter { $0 % 2 == 0 }.map { ($0, $0) })
    }
    let results = await map.request([1, 2, 3, 4])
    #expect(outcomes(results) == [1: "MultiplexerError", 2: "2", 3: "MultiplexerError", 4: "4"])
    #expect(throws: MultiplexerError.missingKey("3")) { try results[3]?.get() }
    await #expect(throws: MultiplexerError.missingKey("5")) { try await map.request(5) }
    #expect(map.cachedValue(1) == nil)
    #expect(map.statistics.counts == CacheStatistics(misses: 5, fetches: 2, failures: 2))
  }

  @Test(arguments: [[1], [1, 2]])
  func `a request does not fetch a key again for which the fetch returned nothing`(
    keys: [Int]
  ) async throws {
    var policy = CachePolicy()
    policy.retry = .exponential(attempts: 3, base: .seconds(1), cap: .seconds(1), jitter: 0)
    let map = MultiplexerMap<Int, Int>.bulk(policy: policy, clock: clock) { keys in
      Dictionary(uniqueKeysWithValues: keys.filter { $0 != 1 }.map { ($0, $0) })
    }
    let results = await map.request(keys)
    #expect(throws: MultiplexerError.missingKey("1")) { try results[1]?.get() }
    await #expect(throws: MultiplexerError.missingKey("1")) { try await map.request(1) }
    #expect(map.statistics.fetches == 2)
    #expect(map.statistics.failures == 2)
  }

  @Test func `a request of several keys returns nothing that it did not request`() async {
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock) { _ in [1: 1, 2: 2, 3: 3] }
    #expect(outcomes(await map.request([1, 2])) == [1: "1", 2: "2"])
    #expect(map.cachedValue(3) == 3)
  }

  @Test func `a request of several keys that fails fails for its keys only`() async throws {
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock) { [origin] keys in
      let values = try await origin.fetch(keys)
      if keys.contains(2) { throw Broken() }
      return values
    }
    let other = begin { await map.request([4, 5]) }
    await origin.gate.arrivals(1)
    let failing = begin { await map.request([1, 2, 3, 4]) }
    await origin.gate.arrivals(2)
    origin.gate.open()
    #expect(
      outcomes(try await failing.value) == [1: "Broken", 2: "Broken", 3: "Broken", 4: "104"]
    )
    #expect(outcomes(try await other.value) == [4: "104", 5: "105"])
    #expect(map.statistics.counts == CacheStatistics(misses: 5, joins: 1, fetches: 2, failures: 1))
    #expect(outcomes(await map.request([1, 3])) == [1: "301", 3: "303"])
  }

  @Test func `a request of several keys uses the values in memory, and fails for the other keys`()
    async throws
  {
    let calls = Tally()
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock) { keys in
      if calls.increment() > 1 { throw Offline() }
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    _ = await map.request([1, 2])
    clock.advance(by: CachePolicy().timeToLive)
    #expect(outcomes(await map.request([1, 2, 3])) == [1: "1", 2: "2", 3: "Offline"])
    #expect(map.cachedValue(1) == 1)
  }

  @Test func `a request of several keys remembers a failure for each key, if the policy says so`()
    async
  {
    var policy = CachePolicy()
    policy.failureTimeToLive = .seconds(5)
    let calls = Tally()
    let map = MultiplexerMap<Int, Int>.bulk(policy: policy, clock: clock) { keys in
      if calls.increment() == 1 { throw Broken() }
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    #expect(outcomes(await map.request([1, 2])) == [1: "Broken", 2: "Broken"])
    #expect(outcomes(await map.request([1, 2, 3])) == [1: "Broken", 2: "Broken", 3: "3"])
    clock.advance(by: .seconds(5))
    #expect(outcomes(await map.request([1, 2, 3])) == [1: "1", 2: "2", 3: "3"])
  }

  @Test func `a request of several keys has one timeout, which fails all its keys`() async throws {
    var policy = CachePolicy()
    policy.fetchTimeout = .seconds(5)
    let map = origin.makeMap(policy: policy, clock: clock)
    let caller = begin { await map.request([1, 2]) }
    await origin.gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(5))
    let results = try await caller.value
    #expect(results.count == 2)
    for result in results.values {
      #expect(throws: MultiplexerError.fetchTimedOut(after: .seconds(5))) { try result.get() }
    }
    #expect(origin.gate.waiterCount == 0)
  }

  @Test func `a request of several keys is tried again as a whole, and counts once`() async throws {
    var policy = CachePolicy()
    policy.retry = .exponential(attempts: 3, base: .seconds(1), cap: .seconds(1), jitter: 0)
    let calls = Tally()
    let map = MultiplexerMap<Int, Int>.bulk(policy: policy, clock: clock) { keys in
      if calls.increment() < 3 { throw Broken() }
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    let caller = begin { await map.request([1, 2]) }
    for _ in 0..<2 {
      await clock.sleepers(1)
      clock.advance(by: .seconds(1))
    }
    #expect(outcomes(try await caller.value) == [1: "1", 2: "2"])
    #expect(map.statistics.counts == CacheStatistics(misses: 2, fetches: 1))
  }

  @Test func `a request of keys is tried again for the other keys though one of them was stored`()
    async throws
  {
    var policy = CachePolicy()
    policy.retry = .exponential(attempts: 2, base: .seconds(1), cap: .seconds(1), jitter: 0)
    let gate = Gate()
    let calls = Tally()
    let map = MultiplexerMap<Int, Int>.bulk(policy: policy, clock: clock) { keys in
      if calls.increment() == 1 {
        try await gate.wait()
        throw Broken()
      }
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    let caller = begin { await map.request([1, 2]) }
    await gate.arrivals(1)
    map.store(7, for: 1)
    gate.open()
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    #expect(outcomes(try await caller.value) == [1: "7", 2: "2"])
    #expect(map.cachedValue(1) == 7)
  }

  @Test func `a request of several keys gets stale values at once, and renews all with one call`()
    async throws
  {
    var policy = CachePolicy()
    policy.staleWhileRevalidate = .seconds(60)
    origin.gate.open()
    let map = origin.makeMap(policy: policy, clock: clock)
    _ = await map.request([1, 2, 3])
    let states = Recorder(map.subscribe(to: 3, bufferingPolicy: .unbounded))
    clock.advance(by: policy.timeToLive)
    #expect(outcomes(await map.request([1, 2, 3])) == [1: "101", 2: "102", 3: "103"])
    #expect(await states.first(3).map(\.name) == ["loaded 103", "loading 103", "loaded 203"])
    #expect(origin.calls == [[1, 2, 3], [1, 2, 3]])
    #expect(map.statistics.counts == CacheStatistics(staleHits: 3, misses: 3, fetches: 2))
  }

  @Test func `a request of several keys finds half of its keys expired, and fetches those only`()
    async
  {
    origin.gate.open()
    let map = origin.makeMap(clock: clock)
    _ = await map.request([1, 2])
    clock.advance(by: .seconds(1000))
    _ = await map.request([3, 4])
    clock.advance(by: .seconds(1000))
    _ = await map.request([1, 2, 3, 4])
    #expect(origin.calls == [[1, 2], [3, 4], [1, 2]])
  }

  @Test func `a request of several keys raises the fetch to the priority of a caller of any key`()
    async throws
  {
    let gate = Gate()
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock) { keys in
      try await gate.wait()
      // There is no notification of a raised priority: without one, the test ends by its time limit.
      while Task.currentPriority < .high { await Task.detached {}.value }
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    let starter = begin(priority: .background) { await map.request([1, 2, 3]) }
    await gate.arrivals(1)
    let joiner = begin(priority: .high) { try await map.request(3) }
    gate.open()
    #expect(try await joiner.value == 3)
    #expect(try await starter.value.count == 3)
  }

  @Test
  func `a request of keys raises the fetch with a caller that becomes more urgent while it waits`()
    async throws
  {
    let gate = Gate()
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock) { keys in
      try await gate.wait()
      while Task.currentPriority < .high { await Task.detached {}.value }
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    let caller = Task.detached(priority: .background) { await map.request([1, 2]) }
    await gate.arrivals(1)
    let urgent = Task.detached(priority: .high) { await caller.value }
    gate.open()
    #expect(await urgent.value.count == 2)
  }

  @Test
  func `a request of keys of a map without a fetch for several fetches each at the same time`()
    async throws
  {
    let gate = Gate()
    let map = MultiplexerMap<Int, Int>(clock: clock) { key in
      try await gate.wait()
      if key == 2 { throw Broken() }
      return key
    }
    let caller = begin { await map.request([1, 2, 3]) }
    await gate.arrivals(3)
    gate.open()
    #expect(outcomes(try await caller.value) == [1: "1", 2: "Broken", 3: "3"])
    #expect(map.statistics.counts == CacheStatistics(misses: 3, fetches: 3, failures: 1))
  }

  @Test func `a request through a refreshed reference gets what was fetched after the refresh`()
    async
  {
    origin.gate.open()
    let map = origin.makeMap(clock: clock)
    _ = await map.request([1, 2])
    #expect(outcomes(await map.refreshAll().request([1, 2])) == [1: "201", 2: "202"])
    #expect(origin.calls == [[1, 2], [1, 2]])
  }

  @Test func `a request of very many keys is one fetch, and every key is answered`() async {
    origin.gate.open()
    let map = origin.makeMap(clock: clock)
    let results = await map.request(0..<20_000)
    #expect(results.count == 20_000)
    #expect(results.allSatisfy { (try? $1.get()) == 100 + $0 })
    #expect(origin.calls.count == 1)
  }
}
