import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A policy with odd numbers` {
  @Test(.startsProcess) func `a policy may have any duration, however long or negative`() async {
    await #expect(processExitsWith: .success) {
      // More than 64 bits of seconds can represent.
      for length in [1e20, -1e20] {
        let duration = Duration.seconds(length)
        for clock in [ManualClock(), ContinuousClock()] as [any Clock<Duration>] {
          var policy = CachePolicy()
          policy.timeToLive = duration
          policy.staleWhileRevalidate = duration
          policy.failureTimeToLive = duration
          policy.expiryJitter = 1
          let cache = Multiplexer(policy: policy, clock: clock) { 1 }
          guard try await cache.request() == 1, try await cache.response().value == 1 else {
            throw Broken()
          }
          let informed = Multiplexer<Int>(policy: policy, clock: clock) { _ in
            .value(1, timeToLive: duration)
          }
          guard try await informed.request() == 1 else { throw Broken() }
          let failing = Multiplexer<Int>(policy: policy, clock: clock) { throw Broken() }
          _ = try? await failing.request()
          _ = try? await failing.request()
        }
      }
    }
  }

  @Test func `a policy may allow a fetch more time than there is`() async throws {
    for length in [Duration.seconds(1e20), .seconds(Int64.max), .seconds(10_000_000_000)] {
      let gate = Gate()
      var policy = CachePolicy()
      policy.fetchTimeout = length
      let cache = Multiplexer(policy: policy) {
        try await gate.wait()
        return 1
      }
      let caller = begin { try await cache.request() }
      await gate.arrivals(1)
      // A timer that fires immediately is faster than a few jobs.
      for _ in 0..<1_000 { await Task.detached {}.value }
      gate.open()
      #expect(try await caller.value == 1, "after \(length)")
    }
  }

  @Test func `a policy may wait between attempts for longer than there is time`() async throws {
    for cap in [Duration.seconds(1e20), .seconds(Int64.max)] {
      let tally = Tally()
      let attempted = Gate()
      var policy = CachePolicy()
      policy.retry = .exponential(attempts: .max, base: cap, cap: cap, jitter: 0.5)
      policy.whenUnobserved = .cancel
      let cache = Multiplexer<Int>(policy: policy) {
        tally.increment()
        attempted.open()
        throw Broken()
      }
      let caller = begin { try await cache.request() }
      try await attempted.wait()
      for _ in 0..<1_000 { await Task.detached {}.value }
      #expect(tally.value == 1, "with waits of \(cap)")
      caller.cancel()
      await #expect(throws: CancellationError.self) { try await caller.value }
    }
  }

  @Test(arguments: CacheKind.allCases)
  func `a policy distinguishes nil as a value from no value`(kind: CacheKind) async throws {
    let tally = Tally()
    let cache = kind.make(Int?.self) {
      tally.increment()
      return nil
    }
    #expect(cache.cachedValue == .none)
    #expect(try await cache.request() == nil)
    #expect(cache.cachedValue == .some(nil))
    #expect(try await cache.request() == nil)
    #expect(tally.value == 1)
  }

  @Test(arguments: CacheKind.allCases)
  func `a policy can call its cache when it decides whether to use the value`(
    kind: CacheKind
  ) async throws {
    let own = OwnCache<CacheUnderTest<Int>>()
    let origin = ScriptedFetcher<Int>([.success(1), .failure(Broken()), .success(3)])
    let calls = Tally()
    let answered = Gate()
    var policy = CachePolicy()
    policy.usesCachedValue = { _ in
      defer { answered.open() }
      for cache in own.elements {
        calls.increment()
        _ = cache.statistics
        cache.refresh()
        cache.clearMemory()
        cache.store(7)
        cache.refresh()
      }
      return true
    }
    let cache = kind.make(policy: policy) { try await origin.fetch() }
    own.send(cache)
    _ = await own.first()
    _ = try await cache.request()
    #expect(try await cache.refresh().request() == 7)
    // The caller is resumed inside the policy, before the last refresh.
    try await answered.wait()
    #expect(calls.value == 1)
    #expect(try await cache.request() == 3)
  }
}
