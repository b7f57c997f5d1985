import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `No fetch` {
  let clock = ManualClock()
  let origin = LiveOrigin(isHeldUp: true)

  private func cache(_ kind: CacheKind) -> CacheUnderTest<Int> {
    kind.make(policy: CachePolicy(whenUnobserved: .cancel), clock: clock) { [origin] in
      try await origin.fetch()
    }
  }

  @Test(.guarantee(.unobservedFetchesDoNotBegin), arguments: CacheKind.allCases, [true, false])
  func `no fetch follows one that all callers have left, also callers that wait for a refresh`(
    kind: CacheKind,
    inOrder: Bool
  ) async throws {
    let cache = cache(kind)
    let early = begin { try await cache.request() }
    let refreshed = cache.refresh()
    let late = begin { try await refreshed.request() }
    // In order, the second fetch begins for the caller that is still there, and is cancelled with it.
    let count = inOrder ? 2 : 1
    await origin.gate.arrivals(1)
    for caller in inOrder ? [early, late] : [late, early] {
      await origin.gate.arrivals(caller == early ? 1 : count)
      caller.cancel()
      await #expect(throws: CancellationError.self) { try await caller.value }
    }
    #expect(cache.statistics.fetches == count)
    origin.gate.open()
    #expect(cache.cachedValue == nil)
    #expect(try await cache.request() == count + 1)
    #expect(cache.statistics.fetches == count + 1)
    #expect(cache.statistics.failures == 0)
  }

  @Test(.guarantee(.interruptedRefreshesFetchAgain), arguments: CacheKind.allCases)
  func `no fetch follows a refresh without callers when an update cuts off the fetch before`(
    kind: CacheKind
  ) async throws {
    let cache = cache(kind)
    cache.store(7)
    let caller = begin { try await cache.refresh().request() }
    await origin.gate.arrivals(1)
    cache.refresh()
    #expect(cache.update { $0 += 1 } == 8)
    await origin.gate.arrivals(2)
    origin.gate.open()
    #expect(try await caller.value == 1)
    #expect(try await cache.request() == 2)
    #expect(cache.statistics.fetches == 2)
  }

  @Test(.guarantee(.unobservedFetchesDoNotBegin), arguments: CacheKind.allCases)
  func `no fetch follows a refresh whose callers have left when the fetch before ends`(
    kind: CacheKind
  ) async throws {
    let cache = cache(kind)
    let early = begin { try await cache.request() }
    let refreshed = cache.refresh()
    let late = begin { try await refreshed.request() }
    await origin.gate.arrivals(1)
    late.cancel()
    await #expect(throws: CancellationError.self) { try await late.value }
    // It can be awaited again until then.
    let next = begin { try await refreshed.request() }
    next.cancel()
    await #expect(throws: CancellationError.self) { try await next.value }
    origin.gate.open()
    #expect(try await early.value == 1)
    #expect(cache.statistics.fetches == 1)
    #expect(cache.cachedValue == 1)
    #expect(try await cache.request() == 2, "the value is outdated")
  }

  @Test(arguments: CacheKind.allCases)
  func `no fetch is cancelled for a caller of a refresh that leaves while another one waits`(
    kind: CacheKind
  ) async throws {
    let cache = cache(kind)
    let early = begin { try await cache.request() }
    let refreshed = cache.refresh()
    let leaving = begin { try await refreshed.request() }
    let staying = begin { try await refreshed.request() }
    await origin.gate.arrivals(1)
    leaving.cancel()
    origin.gate.open()
    #expect(try await early.value == 1)
    #expect(try await staying.value == 2)
    #expect(cache.statistics.fetches == 2)
  }

  @Test(.guarantee(.lastSubscriptionEndsItsFetch), arguments: CacheKind.allCases)
  func `no fetch outlasts the last live subscription, also after a refresh`(
    kind: CacheKind
  ) async throws {
    let cache = LiveCache(kind, origin, CachePolicy(whenUnobserved: .cancel))
    var states: Subscription? = cache.subscription(
      refetching: .whenStale,
      bufferingPolicy: .unbounded
    )
    await origin.gate.arrivals(1)
    cache.refresh()
    origin.gate.admit(1)
    if let states { await states.loaded(1) }
    await origin.gate.arrivals(2)
    #expect(origin.gate.waiterCount == 1)
    states = nil
    #expect(origin.gate.waiterCount == 0, "The fetch was cancelled when the subscription ended")
    #expect(cache.current.name == "loaded 1")
    #expect(cache.statistics.fetches == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `no fetch is cancelled with its caller while there are live subscriptions`(
    kind: CacheKind
  ) async throws {
    origin.fail(1)
    let cache = LiveCache(kind, origin, CachePolicy(whenUnobserved: .cancel))
    let states = cache.subscription(refetching: .whenStale, bufferingPolicy: .unbounded)
    await origin.gate.arrivals(1)
    origin.gate.admit(1)
    await states.failed()
    let caller = begin { try await cache.request() }
    await origin.gate.arrivals(2)
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    origin.gate.open()
    await states.loaded(2)
  }

  @Test(.guarantee(.retriesFetchOnlyNeededKeys))
  func `a retry does not fetch keys whose callers have left`() async throws {
    let bulk = BulkOrigin(isOpen: true)
    let calls = Tally()
    var policy = CachePolicy(whenUnobserved: .cancel)
    policy.retry = .exponential(attempts: 3, base: .seconds(9), cap: .seconds(9), jitter: 0)
    let map = MultiplexerMap<Int, Int>.bulk(policy: policy, clock: clock, window: .seconds(1)) {
      let values = try await bulk.fetch($0)
      if calls.increment() == 1 { throw Broken() }
      return values
    }
    let leaving = begin { try await map.request(1) }
    let staying = begin { try await map.request(2) }
    let stored = begin { try await map.request(3) }
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    await clock.sleepers(1)
    leaving.cancel()
    await #expect(throws: CancellationError.self) { try await leaving.value }
    map.store(33, for: 3)
    #expect(try await stored.value == 33)
    clock.advance(by: .seconds(9))
    #expect(try await staying.value == 202)
    #expect(bulk.calls == [[1, 2, 3], [2]])
    #expect(map.cachedValue(1) == nil)
    #expect(map.cachedValue(3) == 33)
    #expect(map.statistics.fetches == 1)
    #expect(map.statistics.failures == 0)
  }
}
