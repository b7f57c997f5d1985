import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A fetch that takes too long or fails` {
  let clock = ManualClock()

  @Test(.guarantee(.fetchTimeoutIsAFailure), arguments: CacheKind.allCases)
  func `a fetch fails at its timeout, whether it heeds cancellation or not`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    var policy = CachePolicy()
    policy.fetchTimeout = .seconds(5)
    let tally = Tally()
    let cache = kind.make(policy: policy, clock: clock) {
      let number = tally.increment()
      if number == 1 { await waitUnmoved(gate) }
      return number
    }
    let caller = begin { try await cache.request() }
    let joiner = begin { try await cache.request() }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(5))
    await #expect(throws: MultiplexerError.fetchTimedOut(after: .seconds(5))) {
      try await caller.value
    }
    await #expect(throws: MultiplexerError.fetchTimedOut(after: .seconds(5))) {
      try await joiner.value
    }
    #expect(try await cache.request() == 2)
    #expect(
      cache.statistics.counts
        == CacheStatistics(misses: 2, joins: 1, fetches: 2, failures: 1, abandoned: 1)
    )
    gate.open()
    #expect(cache.cachedValue == 2, "A late result loses")
  }

  @Test(arguments: CacheKind.allCases)
  func `a fetch is cancelled at its timeout, and not before`(kind: CacheKind) async throws {
    let gate = Gate()
    var policy = CachePolicy()
    policy.fetchTimeout = .seconds(5)
    let origin = ScriptedFetcher<Int>([.success(1)], gate: gate)
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .nanoseconds(4_999_999_999))
    #expect(gate.waiterCount == 1)
    clock.advance(by: .nanoseconds(1))
    await #expect(throws: MultiplexerError.fetchTimedOut(after: .seconds(5))) {
      try await caller.value
    }
    #expect(gate.waiterCount == 0)
  }

  @Test(.guarantee(.fetchTimeoutIsAFailure), arguments: CacheKind.allCases)
  func `a fetch leaves no sleeper behind when it is in time`(kind: CacheKind) async throws {
    var policy = CachePolicy()
    policy.fetchTimeout = .seconds(5)
    let cache = kind.make(policy: policy, clock: clock) { 1 }
    for _ in 0..<100 {
      #expect(try await cache.refresh().request() == 1)
    }
    clock.advance(by: .seconds(60))
    #expect(cache.cachedValue == 1)
    #expect(cache.statistics.failures == 0)
  }

  @Test(arguments: CacheKind.allCases)
  func `a fetch at its timeout uses the value if the policy says so`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    var policy = CachePolicy()
    policy.fetchTimeout = .seconds(5)
    policy.usesCachedValue = { $0 is MultiplexerError }
    let origin = ScriptedFetcher<Int>([.success(1), .success(2)], gate: gate)
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    gate.admit(1)
    _ = try await cache.request()
    let refreshed = cache.refresh()
    let caller = begin { try await refreshed.response() }
    await gate.arrivals(2)
    await clock.sleepers(1)
    clock.advance(by: .seconds(5))
    #expect(try await caller.value.value == 1)
  }

  @Test(.guarantee(.retryDelaysDouble), arguments: CacheKind.allCases)
  func `a fetch is retried after waits that double up to the cap, and receives its number`(
    kind: CacheKind
  ) async throws {
    let attempts = RecordedChannel<Int>()
    var policy = CachePolicy()
    policy.retry = .exponential(attempts: 5, base: .seconds(1), cap: .seconds(3), jitter: 0)
    let cache = kind.makeInformed(policy: policy, clock: clock) { (context: FetchContext<Int>) in
      attempts.send(context.attempt)
      guard context.attempt == 5 else { throw Broken() }
      return .value(7)
    }
    let caller = begin { try await cache.request() }
    for seconds in [1, 2, 3, 3] {
      await clock.sleepers(1)
      clock.advance(by: .nanoseconds(seconds * 1_000_000_000 - 1))
      await clock.sleepers(1)
      clock.advance(by: .nanoseconds(1))
    }
    #expect(try await caller.value == 7)
    #expect(await attempts.recorder.first(5) == [1, 2, 3, 4, 5])
    #expect(cache.statistics.counts == CacheStatistics(misses: 1, fetches: 1))
  }

  @Test(arguments: CacheKind.allCases)
  func `a fetch that fails every time fails with the last error, and counts once`(
    kind: CacheKind
  ) async throws {
    let origin = ScriptedFetcher<Int>([
      .failure(Broken(reason: "a")), .failure(Broken(reason: "b")), .success(3),
    ])
    var policy = CachePolicy()
    policy.retry = .exponential(attempts: 2, base: .zero, cap: .zero, jitter: 0)
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    await #expect(throws: Broken(reason: "b")) { try await cache.request() }
    #expect(origin.count == 2)
    #expect(cache.statistics.counts == CacheStatistics(misses: 1, fetches: 1, failures: 1))
  }

  @Test(arguments: CacheKind.allCases)
  func `a fetch has its timeout for each attempt`(kind: CacheKind) async throws {
    let gate = Gate()
    var policy = CachePolicy()
    policy.fetchTimeout = .seconds(5)
    policy.retry = .exponential(attempts: 2, base: .seconds(1), cap: .seconds(1), jitter: 0)
    let tally = Tally()
    let cache = kind.make(policy: policy, clock: clock) {
      let number = tally.increment()
      if number == 1 { await waitUnmoved(gate) }
      return number
    }
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(5))
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    #expect(try await caller.value == 2)
    gate.open()
    #expect(cache.cachedValue == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `a fetch that waits to be tried again stops at once when it is cancelled`(
    kind: CacheKind
  ) async throws {
    var policy = CachePolicy()
    policy.whenUnobserved = .cancel
    policy.retry = .exponential(attempts: 9, base: .seconds(9), cap: .seconds(9), jitter: 0)
    let origin = ScriptedFetcher<Int>([.failure(Broken()), .success(2)])
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    let caller = begin { try await cache.request() }
    await clock.sleepers(1)
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    clock.advance(by: .seconds(100))
    #expect(origin.count == 1)
    #expect(cache.statistics.failures == 0)
    #expect(try await cache.request() == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `a fetch with a timeout is cancelled when its last caller leaves`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    var policy = CachePolicy()
    policy.whenUnobserved = .cancel
    policy.fetchTimeout = .seconds(5)
    let origin = ScriptedFetcher<Int>([.success(1)], gate: gate)
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    #expect(gate.waiterCount == 0)
    gate.open()
    #expect(try await cache.request() == 1)
  }

  @Test(.startsProcess)
  func `a fetch timeout of zero and a jitter of more than everything are mistakes`() async {
    await #expect(processExitsWith: .failure) {
      var policy = CachePolicy()
      policy.fetchTimeout = .zero
      _ = Multiplexer(policy: policy) { 1 }
    }
    await #expect(processExitsWith: .failure) {
      var policy = CachePolicy()
      policy.expiryJitter = 1.1
      _ = MultiplexerMap<Int, Int>(policy: policy) { $0 }
    }
  }

  @Test(.startsProcess)
  func `a retry policy without an attempt or with a negative wait is a mistake`()
    async
  {
    await #expect(processExitsWith: .failure) {
      _ = RetryPolicy.exponential(attempts: 0, base: .zero, cap: .zero, jitter: 0)
    }
    await #expect(processExitsWith: .failure) {
      _ = RetryPolicy.exponential(attempts: 1, base: .seconds(-1), cap: .zero, jitter: 0)
    }
    await #expect(processExitsWith: .failure) {
      _ = RetryPolicy.exponential(attempts: 1, base: .zero, cap: .zero, jitter: 2)
    }
  }

  @Test(arguments: CacheKind.allCases)
  func `a fetch that waits to be tried again is not, once a value was stored`(
    kind: CacheKind
  ) async throws {
    var policy = CachePolicy()
    policy.retry = .exponential(attempts: 9, base: .seconds(9), cap: .seconds(9), jitter: 0)
    let origin = ScriptedFetcher<Int>([.failure(Broken()), .success(2)])
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    let caller = begin { try await cache.request() }
    await clock.sleepers(1)
    cache.store(1)
    #expect(try await caller.value == 1)
    #expect(clock.sleeperCount == 1)
    clock.advance(by: .seconds(9))
    // The fetch for a refresh follows the one in flight.
    let refreshed = begin { try await cache.refresh().request() }
    #expect(try await refreshed.value == 2)
    #expect(origin.count == 2)
  }
}
