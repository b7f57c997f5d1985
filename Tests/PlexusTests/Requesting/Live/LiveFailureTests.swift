import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A failed fetch of a live subscription` {
  /// The signals of one subscription.
  private let signals = LiveSignals()

  private func policy(failureTimeToLive: Duration = .zero) -> CachePolicy {
    CachePolicy(timeToLive: .seconds(1_000), failureTimeToLive: failureTimeToLive)
  }

  @Test(.guarantee(.failedIntervalsKeepValuesFresh), arguments: CacheKind.allCases, [true, false])
  func `a failed live fetch for an interval or a signal leaves a fresh value fresh`(
    kind: CacheKind,
    isInterval: Bool
  ) async throws {
    let origin = LiveOrigin()
    origin.fail(2, 4)
    let cache = LiveCache(kind, origin, policy())
    let states = cache.subscription(
      refetching: isInterval ? .every(.seconds(4)) : .on(signals),
      bufferingPolicy: .unbounded
    )
    await states.loaded(1)
    for number in [2, 4] {
      if isInterval {
        await origin.clock.sleepers(1)
        origin.clock.advance(by: .seconds(4))
      } else {
        await signals.send()
      }
      await states.failed()
      for _ in 0..<10 { #expect(try await cache.request() == number - 1) }
      #expect(cache.statistics.fetches == number)
      guard number == 2 else { continue }
      // Only a refresh says that the value is outdated.
      cache.refresh()
      await states.loaded(3)
    }
    #expect(cache.statistics.hits == 20)
  }

  @Test(.guarantee(.failedRefreshesKeepValuesOutdated), arguments: CacheKind.allCases)
  func `a failed live fetch for a refresh leaves the value outdated`(kind: CacheKind) async throws {
    let origin = LiveOrigin()
    origin.fail(2)
    let cache = LiveCache(kind, origin, policy())
    let states = cache.subscription(refetching: .on(signals), bufferingPolicy: .unbounded)
    await states.loaded(1)
    cache.refresh()
    await states.failed()
    #expect(try await cache.request() == 3)
  }

  @Test(arguments: CacheKind.allCases)
  func `a failed live fetch leaves a stale value usable for its time`(kind: CacheKind) async throws
  {
    let origin = LiveOrigin()
    origin.fail(2, 3)
    var policy = policy()
    policy.staleWhileRevalidate = .seconds(1_000)
    let cache = LiveCache(kind, origin, policy)
    let states = cache.subscription(refetching: .whenStale, bufferingPolicy: .unbounded)
    await states.loaded(1)
    await origin.sleeps(until: 1_000)
    origin.clock.advance(by: .seconds(1_000))
    await states.failed()
    #expect(try await cache.request() == 1)
  }

  @Test(
    .guarantee(.rememberedFailuresHoldForLiveData),
    arguments: CacheKind.allCases,
    [false, true]
  )
  func `a failed live fetch is remembered for the live subscriptions that follow`(
    kind: CacheKind,
    hasValue: Bool
  ) async throws {
    let origin = LiveOrigin()
    origin.fail(hasValue ? 2 : 1, hasValue ? 3 : 2)
    let cache = LiveCache(kind, origin, policy(failureTimeToLive: .seconds(60)))
    if hasValue {
      #expect(try await cache.request() == 1)
      origin.clock.advance(by: .seconds(1_000))
    }
    let count = hasValue ? 2 : 1
    for _ in 0..<10 {
      let states = cache.subscription(refetching: .whenStale, bufferingPolicy: .unbounded)
      await states.failed()
    }
    #expect(cache.statistics.fetches == count)
    await #expect(throws: Broken.self) { try await cache.request() }
    #expect(origin.fetches.count == count)
    origin.clock.advance(by: .seconds(60))
    let states = cache.subscription(refetching: .whenStale, bufferingPolicy: .unbounded)
    await origin.fetches.first(count + 1)
    withExtendedLifetime(states) {}
  }

  @Test(.guarantee(.signalsIgnoreRememberedFailures), arguments: CacheKind.allCases)
  func `a failed live fetch is remembered until an interval, a signal, a refresh or a clear`(
    kind: CacheKind
  ) async throws {
    let origin = LiveOrigin()
    origin.fail(1, 2, 3, 4)
    let cache = LiveCache(kind, origin, policy(failureTimeToLive: .seconds(60)))
    let states = cache.subscription(
      refetching: Refetching.every(.seconds(10)).and(.on(signals)),
      bufferingPolicy: .unbounded
    )
    await states.failed()
    await origin.clock.sleepers(1)
    origin.clock.advance(by: .seconds(10))
    await states.failed()
    await signals.send()
    await states.failed()
    cache.refresh()
    await states.failed()
    #expect(cache.statistics.fetches == 4)
    try await cache.clear()
    await states.loaded(5)
  }
}
