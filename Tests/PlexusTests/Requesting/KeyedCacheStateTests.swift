import PlexusTesting
import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `A flight that was left` {
  @Test
  func `a flight that was left continues for a caller that has joined since the last one left`()
    async throws
  {
    var policy = CachePolicy()
    policy.whenUnobserved = .cancel
    let gate = Gate()
    let cache = KeyedCache<Int, Int>(
      id: "numbers",
      type: Int.self,
      namesKeys: true,
      policy: policy,
      clock: ManualClock(),
      fetch: KeyedCache.fetch { (key: Int) in
        try await gate.wait()
        return key
      }
    )
    let hash = cache.hasher.hash(7)
    func join() throws -> (Flight, WaitPlace) {
      var effects = cache.makeEffects()
      let caller = KeyedCache<Int, Int>.Caller(nil, at: cache.time.now())
      let admission = cache.admit(7, hash: hash, caller, &effects)
      effects.perform(in: cache)
      guard case .waits(let flight, let place) = admission else {
        throw Broken(reason: "There was nothing to wait for")
      }
      return (flight, place)
    }
    func abandon(_ flight: Flight) -> Bool {
      cache.abandon(flight)
      return flight.isCancelled
    }
    let (flight, first) = try join()
    #expect(flight.leave(first).isLast)
    // The last caller is about to abandon the flight when another one joins.
    let (same, second) = try join()
    #expect(same === flight)
    #expect(!abandon(flight))
    #expect(flight.leave(second).isLast)
    #expect(abandon(flight))
  }
}

@Suite(.fewAtOnce) struct `The time of a fetch` {
  @Test(arguments: [true, false])
  func `the time of a fetch does not count if it is cancelled`(isCancelled: Bool) async throws {
    let clock = ManualClock()
    let cache = KeyedCache<Int, Int>(
      id: "numbers",
      type: Int.self,
      namesKeys: true,
      policy: CachePolicy(),
      clock: clock,
      fetch: KeyedCache.fetch { (key: Int) in key }
    )
    let flight = KeyFlight(7, source: cache.source, hash: cache.hasher.hash(7), priority: .none)
    _ = try await cache.attempts(of: flight) { flight, _ in
      clock.advance(by: .seconds(1))
      if isCancelled { flight.cancel() }
      return ValueOutcome(7)
    }
    cache.shards.withLock(hash: flight.hash) { $0.countTime(of: flight) }
    #expect(cache.currentStatistics.fetchTime == (isCancelled ? .zero : .seconds(1)))
    #expect(cache.currentStatistics.longestFetch == (isCancelled ? .zero : .seconds(1)))
  }
}

@Suite(.fewAtOnce) struct `A clear by tag` {
  @Test(.guarantee(.cacheEventsNameOutcomes))
  func `a clear by tag covers copies that were written before the clock was set back`() async throws
  {
    let map = MultiplexerMap<Int, Int>(
      cacher: SimpleCacher(),
      tagging: { _ in ["all"] },
      clock: ManualClock(),
      onKeyFetch: { $0 }
    )
    let cache = await map.owner.cache
    let ledger = try #require(cache.storage).ledger
    var future = wallClockTime() + .seconds(3600)
    let isWritten = ledger.marks.withLock { $0.adjust(&future, "1", ["all"], since: 0) }
    #expect(isWritten)
    cache.forget(tags: ["all"])
    let verdicts = [future, future + .nanoseconds(1)].map { time in
      ledger.marks.withLock { $0.judge("1", ["all"], storedAt: time) }
    }
    #expect(verdicts == [.cleared, .usable])
  }
}

@Suite(.fewAtOnce) struct `A key that is not equal to itself` {
  @Test(
    .guarantee(.unequalKeysUseNoMemory),
    arguments: [CachePolicy.UnobservedFetch.finishAndStore, .cancel]
  )
  func `a key that is not equal to itself is fetched for its callers, and uses no memory`(
    whenUnobserved: CachePolicy.UnobservedFetch
  ) async throws {
    var policy = CachePolicy()
    policy.whenUnobserved = whenUnobserved
    let cache = KeyedCache<Double, Int>(
      id: "numbers",
      type: Int.self,
      namesKeys: true,
      policy: policy,
      clock: ManualClock(),
      fetch: KeyedCache.fetch { (_: Double) in 1 }
    )
    for _ in 0..<10 {
      let hash = cache.hasher.hash(Double.nan)
      #expect(try await cache.request(Double.nan, hash: hash, ticket: .none).value == 1)
    }
    var count = 0
    cache.shards.withEachLock { count += $0.keys.count }
    #expect(count == 0)
    #expect(cache.statistics == CacheStatistics(misses: 10, fetches: 10))
  }

  @Test(.guarantee(.unequalKeysUseNoMemory))
  func `a key that is not equal to itself leaves nothing behind, whatever is done with it`()
    async throws
  {
    let map = MultiplexerMap<Double, Int>(clock: ManualClock()) { _ in 1 }
    for _ in 0..<3 {
      map.store(1, for: .nan)
      map.store([.nan: 1])
      map.update(.nan) { $0 += 1 }
      try await map.update(.nan, optimistically: { $0 += 1 }, commit: {})
      await #expect(throws: Broken.self) {
        try await map.update(.nan, optimistically: { $0 += 1 }, commit: { throw Broken() })
      }
      map.prefetch([.nan, .nan])
      map.refresh([.nan])
      map.clearMemory(.nan)
      try await map.clear([.nan])
      try await map.clear(where: \.isNaN)
      let states = map.subscribe(to: .nan)
      let live = map[.nan].subscribe(refetching: .whenStale)
      #expect(map.cachedValue(.nan) == nil)
      withExtendedLifetime((states, live)) {}
    }
    #expect(map.count == 0)
    var left = 0
    let cache = await map.owner.cache
    cache.shards.withEachLock { shard in
      left += shard.keys.count
      guard let extras = shard.extras else { return }
      left += extras.edits.count + extras.hubs.count + extras.lives.count
    }
    #expect(left == 0)
  }

  @Test(.guarantee(.unequalKeysUseNoMemory))
  func `a key that is not equal to itself has an answer among those of other keys`() async {
    let map = MultiplexerMap<Double, Int>(clock: ManualClock()) { _ in 1 }
    let results = await map.request([.nan, 1, .nan, 1])
    #expect(results.count == 3)
    #expect(results.values.compactMap { try? $0.get() } == [1, 1, 1])
  }
}

@Suite struct `A map that is paused` {
  @Test func `an unrequested value is not stored while its map is paused for a sign-out`()
    async throws
  {
    let gate = Gate()
    let map = MultiplexerMap<Int, Int>.bulk { keys in
      try await gate.wait()
      return [8: 80, 9: 90].merging(keys.map { ($0, $0 * 10) }) { $1 }
    }
    let before = begin { try await map.request(1) }
    await gate.arrivals(1)
    await map.cache.pause()
    let during = begin { try await map.request(2) }
    await gate.arrivals(2)
    gate.open()
    #expect(try await before.value == 10)
    #expect(try await during.value == 20)
    #expect(map.count == 0)
    await map.cache.resume()
    #expect(map.count == 0)
    #expect(try await map.request(3) == 30)
    #expect(map.keys.sorted() == [3, 8, 9])
  }
}
