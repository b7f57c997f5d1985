import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A map of limited cost` {
  let clock = ManualClock()

  @Test(.guarantee(.mapsStayWithinCapacity))
  func `a map of limited cost never keeps more than its limit`() async throws {
    var random = SeededRandom(seed: 1)
    let map = MultiplexerMap<Int, Int>(capacity: .cost(100) { $0 }, clock: clock) { _ in 0 }
    for _ in 0..<300 {
      let key = Int.random(in: 0..<60, using: &random)
      map.store(Int.random(in: 0...110, using: &random), for: key)
      _ = try await map.request(Int.random(in: 0..<60, using: &random))
      #expect((0..<60).reduce(0) { $0 + (map.cachedValue($1) ?? 0) } <= 100)
    }
  }

  @Test(.guarantee(.oversizedValuesEvictNothing))
  func `a map of limited cost keeps no value that costs more than the limit, and evicts nothing`()
    async throws
  {
    let map = MultiplexerMap<Int, Int>(capacity: .cost(10) { $0 }, clock: clock) { $0 }
    map.store(5, for: 5)
    map.store(4, for: 4)
    let events = Recorder(map.events())
    #expect(try await map.request(11) == 11)
    #expect(map.cachedValue(11) == nil)
    map.store(1_000, for: 12)
    #expect(map.cachedValue(12) == nil)
    #expect(map.cachedValue(5) == 5)
    #expect(map.cachedValue(4) == 4)
    #expect(map.statistics.counts == CacheStatistics(misses: 1, fetches: 1))
    #expect(await events.first(2).map(\.description) == ["fetched 11", "12 was stored"])
    // A cost equal to the whole capacity is not too high.
    map.store(10, for: 10)
    #expect(map.cachedValue(10) == 10)
    #expect(map.statistics.evictions == 2)
  }

  @Test
  func `a map of limited cost does not go back to an older value when the new one costs too much`()
    async throws
  {
    let origin = ScriptedFetcher<Int>([.success(5), .success(50), .success(6)])
    let map = MultiplexerMap<Int, Int>(capacity: .cost(10) { $0 }, clock: clock) { _ in
      try await origin.fetch()
    }
    #expect(try await map.request(1) == 5)
    #expect(try await map.refresh(1).request(1) == 50)
    #expect(map.cachedValue(1) == nil)
    #expect(try await map.request(1) == 6)
    map.store(70, for: 1)
    #expect(map.cachedValue(1) == nil)
  }

  @Test func `a map of limited cost counts a negative cost as nothing`() {
    let map = MultiplexerMap<Int, Int>(capacity: .cost(10) { $0 }, clock: clock) { $0 }
    map.store(10, for: 0)
    map.store(-5, for: 1)
    map.store(.min, for: 2)
    #expect(map.cachedValue(0) == 10)
    #expect(map.cachedValue(1) == -5)
    map.store(1, for: 3)
    #expect([0, 3].compactMap { map.cachedValue($0) }.reduce(0, +) <= 10)
  }

  @Test func `a map of limited cost makes room when a renewed value costs more`() async throws {
    let origin = ScriptedFetcher<Int>([.success(2), .success(9)])
    let map = MultiplexerMap<Int, Int>(capacity: .cost(10) { $0 }, clock: clock) { _ in
      try await origin.fetch()
    }
    for key in 1...4 { map.store(2, for: key) }
    #expect(try await map.request(0) == 2)
    #expect(map.statistics.evictions == 0)
    #expect(try await map.refresh(0).request(0) == 9)
    #expect((0...4).reduce(0) { $0 + (map.cachedValue($1) ?? 0) } <= 10)
    #expect(map.statistics.evictions > 0)
  }

  @Test(.guarantee(.noLockWhileUserCodeRuns))
  func `a map of limited cost computes the cost under no lock, and once for each value`()
    async throws
  {
    let calls = RecordedChannel<@Sendable () -> Void>()
    let tally = Tally()
    let map = MultiplexerMap<Int, Int>(
      capacity: .cost(10) { value in
        tally.increment()
        for call in calls.recorder.elements { call() }
        return value
      },
      clock: clock
    ) { $0 }
    calls.send { [weak map] in
      _ = map?.cachedValue(1)
      _ = map?.statistics
      map?.refresh(1)
    }
    _ = await calls.recorder.first(1)
    _ = try await map.request(3)
    _ = try await map.request(3)
    map.store(4, for: 4)
    #expect(tally.value == 2)
    _ = await map.request([5, 6])
    #expect(tally.value == 4)
  }

  @Test(.guarantee(.evictedValuesAreWrittenFirst))
  func `a map of limited cost writes evicted values first, also those of too high a cost`()
    async throws
  {
    let cacher = SimpleCacher()
    let map = MultiplexerMap<Int, Int>(
      capacity: .cost(10) { $0 },
      cacher: cacher,
      clock: clock
    ) { $0 }
    _ = try await map.request(6)
    _ = try await map.request(7)
    _ = try await map.request(50)
    try await map.flush()
    #expect(cacher.values == ["6": 6, "7": 7, "50": 50])
    #expect(map.cachedValue(6) == nil)
    #expect(map.cachedValue(50) == nil)
  }

  @Test(.guarantee(.costsAreComputedOnce))
  func `a map of limited cost counts the value when its last live subscription ends, and once`() {
    let costs = Log<Int>()
    let map = MultiplexerMap<Int, Int>(
      capacity: .cost(1_000) { value in
        costs.append(value)
        return value
      },
      clock: clock
    ) { $0 }
    map.store(100, for: 1)
    var live: Subscription<LoadState<Int>>? = map[1].subscription(refetching: .whenStale)
    map.store(900, for: 2)
    map.store(901, for: 1)
    #expect(costs.entries == [100, 900, 901])
    _ = live.take()
    #expect([1, 2].compactMap { map.cachedValue($0) }.reduce(0, +) <= 1_000)
    #expect(costs.entries == [100, 900, 901])
    live = map[2].subscription(refetching: .whenStale)
    map.store(2_000, for: 2)
    _ = live.take()
    #expect(map.cachedValue(2) == nil, "it costs more than the limit")
  }

  @Test(.guarantee(.costsAreComputedOnce))
  func `a map of limited cost does not compute a cost again when a change is taken back`()
    async throws
  {
    let costs = Log<Int>()
    let map = MultiplexerMap<Int, Int>(
      capacity: .cost(10) { value in
        costs.append(value)
        return value
      },
      clock: clock
    ) { $0 }
    map.store(3, for: 1)
    map.store(4, for: 2)
    _ = try? await map.update(1, optimistically: { $0 += 2 }, commit: { throw Broken() })
    #expect(costs.entries == [3, 4, 5])
    #expect(map.cachedValue(1) == 3)
    map.store(1, for: 3)
    #expect(map.statistics.evictions == 0)
  }

  @Test func `a map of limited cost bears costs whose sum overflows`() {
    let map = MultiplexerMap<Int, Int>(capacity: .cost(.max) { $0 }, clock: clock) { $0 }
    map.store(.max, for: 1)
    map.store(.max, for: 2)
    #expect(map.cachedValue(1) == nil)
    #expect(map.cachedValue(2) == .max)
  }
}
