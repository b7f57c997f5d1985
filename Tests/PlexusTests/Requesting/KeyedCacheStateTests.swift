import PlexusTesting
import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce, .timeLimit(.minutes(20))) struct `A flight that was left` {
  @Test func `R6: continues for a caller that has joined since the last one left`() async throws {
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
      let admission = cache.admit(7, hash: hash, ticket: .none, caller, &effects)
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

@Suite(.fewAtOnce, .timeLimit(.minutes(20))) struct `A key that is not equal to itself` {
  @Test(arguments: [UnobservedFetch.finishAndStore, .cancel])
  func `is fetched for its callers, and takes no room`(
    whenUnobserved: UnobservedFetch
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
      #expect(try await cache.settle(Double.nan, hash: hash, ticket: .none).value == 1)
    }
    var count = 0
    cache.shards.withEachLock { count += $0.keys.count }
    #expect(count == 0)
    #expect(cache.statistics == CacheStatistics(misses: 10, fetches: 10))
  }
}
