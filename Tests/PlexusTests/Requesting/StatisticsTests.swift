import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `The statistics of a cache` {
  let clock = ManualClock()

  /// Requests in a task that is already cancelled.
  private func requestWhenCancelled(_ cache: CacheUnderTest<Int>) async -> Int? {
    let task = begin {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await cache.request()
    }
    return try? await task.value
  }

  @Test(.guarantee(.cancelledRequestsCountOnce), arguments: CacheKind.allCases)
  func `the statistics of a cache count a request in a cancelled task once`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let cache = kind.make(policy: CachePolicy(timeToLive: .seconds(60)), clock: clock) {
      try await gate.wait()
      return 1
    }
    #expect(await requestWhenCancelled(cache) == nil)
    #expect(cache.statistics.counts == CacheStatistics(misses: 1))
    let caller = begin { try await cache.request() }
    #expect(await requestWhenCancelled(cache) == nil)
    gate.open()
    #expect(try await caller.value == 1)
    #expect(await requestWhenCancelled(cache) == 1)
    #expect(cache.statistics.counts == CacheStatistics(hits: 1, misses: 3, fetches: 1))
    #expect(gate.arrivalCount == 1)
  }

  @Test func `the statistics of a cache count each of several keys in a cancelled task once`()
    async throws
  {
    let map = BulkOrigin(isOpen: true).makeMap(clock: clock)
    map.store(1, for: 1)
    let task = begin {
      withUnsafeCurrentTask { $0?.cancel() }
      return await map.request([1, 2, 3])
    }
    #expect(outcomes(try await task.value).count == 3)
    #expect(map.statistics.counts == CacheStatistics(hits: 1, misses: 2))
  }

  @Test(arguments: CacheKind.allCases)
  func `statistics count the closures that are called, and none that is cancelled before`(
    kind: CacheKind
  ) async throws {
    let calls = Log<Void>()
    let cache = kind.make(policy: CachePolicy(whenUnobserved: .cancel), clock: clock) {
      calls.append(())
      return 1
    }
    // Each fetch is cancelled before, during or after its call.
    for _ in 0..<200 {
      let caller = begin { try await cache.request() }
      caller.cancel()
      _ = await caller.result
      cache.clearMemory()
    }
    #expect(try await cache.request() == 1)
    let statistics = cache.statistics
    // The calls that are counted can still be about to begin.
    await calls.first(statistics.fetches)
    #expect(calls.count == statistics.fetches)
    #expect(statistics.hits + statistics.misses + statistics.joins == 201)
  }

  @Test(.guarantee(.abandonedCountsOverdueCalls), arguments: CacheKind.allCases)
  func `the statistics of a cache show fetches that are still running after their time limit`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    var policy = CachePolicy(fetchTimeout: .seconds(5))
    policy.retry = .exponential(attempts: 2, base: .seconds(1), cap: .seconds(1), jitter: 0)
    let ended = Log<Void>()
    let cache = kind.make(policy: policy, clock: clock) {
      await waitUnmoved(gate)
      ended.append(())
      return 1
    }
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    #expect(cache.statistics.abandoned == 0)
    await clock.sleepers(1)
    clock.advance(by: .seconds(5))
    await clock.sleepers(1)
    #expect(cache.statistics.abandoned == 1, "It waits for the second attempt")
    clock.advance(by: .seconds(1))
    await gate.arrivals(2)
    await clock.sleepers(1)
    clock.advance(by: .seconds(5))
    await #expect(throws: MultiplexerError.self) { try await caller.value }
    #expect(cache.statistics.abandoned == 2)
    #expect((cache.statistics + cache.statistics).abandoned == 4)
    #expect(cache.statistics.fetches == 1)
    #expect(cache.statistics.failures == 1)
    gate.open()
    await ended.first(2)
    while cache.statistics.abandoned > 0 { await Task.detached {}.value }
  }

  @Test func `statistics show a fetch of several keys as one, and not the one that ends in time`()
    async throws
  {
    let gate = Gate()
    let policy = CachePolicy(fetchTimeout: .seconds(5))
    let map = MultiplexerMap<Int, Int>.bulk(policy: policy, clock: clock) { keys in
      if keys != [9] { await waitUnmoved(gate) }
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    #expect(try await map.request(9) == 9)
    let caller = begin { await map.request([1, 2, 3]) }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(5))
    #expect(outcomes(try await caller.value)[1] == "MultiplexerError")
    #expect(map.statistics.abandoned == 1)
    gate.open()
    while map.statistics.abandoned > 0 { await Task.detached {}.value }
    #expect(map.statistics.fetches == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `the statistics of a cache show a cancelled fetch once its time limit is over`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let policy = CachePolicy(fetchTimeout: .seconds(5), whenUnobserved: .cancel)
    let cache = kind.make(policy: policy, clock: clock) {
      await waitUnmoved(gate)
      return 1
    }
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    await clock.sleepers(1)
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    #expect(cache.statistics.abandoned == 0)
    clock.advance(by: .seconds(5))
    while cache.statistics.abandoned == 0 { await Task.detached {}.value }
    gate.open()
    while cache.statistics.abandoned > 0 { await Task.detached {}.value }
    #expect(cache.statistics.failures == 0)
  }
}
