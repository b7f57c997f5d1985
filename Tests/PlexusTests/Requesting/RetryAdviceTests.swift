import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A fetch with retry advice` {
  let clock = ManualClock()

  /// A response such as "503 Service Unavailable" with a Retry-After field.
  private struct Busy: RetryAdvice {
    var retryAfter: Duration?
  }

  private static func policy(attempts: Int = 2) -> CachePolicy {
    var policy = CachePolicy()
    policy.retry = .exponential(
      attempts: attempts,
      base: .seconds(1),
      cap: .seconds(2),
      jitter: 0
    )
    policy.maximumRetryAfter = .seconds(90)
    return policy
  }

  @Test(
    arguments: CacheKind.allCases,
    [
      (Duration?.some(.seconds(90)), Duration.seconds(90)),
      (.milliseconds(1500), .milliseconds(1500)),
      (.milliseconds(10), .seconds(1)), (.zero, .seconds(1)), (.seconds(-90), .seconds(1)),
      (nil, .seconds(1)),
    ]
  )
  func `a fetch waits as long as advised, also beyond the cap, and no shorter than by itself`(
    kind: CacheKind,
    wait: (advice: Duration?, expected: Duration)
  ) async throws {
    let origin = ScriptedFetcher<Int>([.failure(Busy(retryAfter: wait.advice)), .success(2)])
    let cache = kind.make(policy: Self.policy(), clock: clock) { try await origin.fetch() }
    let caller = begin { try await cache.request() }
    await clock.sleepers(1)
    clock.advance(by: wait.expected - .nanoseconds(1))
    await clock.sleepers(1)
    #expect(origin.count == 1)
    clock.advance(by: .nanoseconds(1))
    #expect(try await caller.value == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `a fetch with retry advice heeds each advice for the wait that follows it only`(
    kind: CacheKind
  ) async throws {
    let origin = ScriptedFetcher<Int>([
      .failure(Busy(retryAfter: .seconds(60))), .failure(Broken()), .success(3),
    ])
    let cache = kind.make(policy: Self.policy(attempts: 3), clock: clock) {
      try await origin.fetch()
    }
    let caller = begin { try await cache.request() }
    for wait in [Duration.seconds(60), .seconds(2)] {
      await clock.sleepers(1)
      clock.advance(by: wait)
    }
    #expect(try await caller.value == 3)
  }

  @Test(arguments: CacheKind.allCases)
  func `a fetch is not tried more often because of retry advice`(kind: CacheKind) async throws {
    let advice = Busy(retryAfter: .zero)
    let origin = ScriptedFetcher<Int>([.failure(advice), .failure(advice), .success(3)])
    let never = kind.make(clock: clock) { try await origin.fetch() }
    await #expect(throws: Busy.self) { try await never.request() }
    #expect(origin.count == 1)

    let once = kind.make(policy: Self.policy(attempts: 1), clock: clock) {
      try await origin.fetch()
    }
    await #expect(throws: Busy.self) { try await once.request() }
    #expect(origin.count == 2)
  }

  @Test(
    arguments: CacheKind.allCases,
    [Duration.seconds(Int64.max), Duration(secondsComponent: .max, attosecondsComponent: 999)]
  )
  func `a fetch with retry advice can be advised to wait endlessly, and still be abandoned`(
    kind: CacheKind,
    advice: Duration
  ) async throws {
    var policy = Self.policy()
    policy.whenUnobserved = .cancel
    policy.maximumRetryAfter = advice
    let origin = ScriptedFetcher<Int>([.failure(Busy(retryAfter: advice)), .success(2)])
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    let caller = begin { try await cache.request() }
    await clock.sleepers(1)
    clock.advance(by: .seconds(1_000_000_000))
    #expect(origin.count == 1)
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    #expect(try await cache.request() == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `a fetch is not tried again if it would have to wait longer than the policy accepts`(
    kind: CacheKind
  ) async throws {
    let origin = ScriptedFetcher<Int>([
      .failure(Busy(retryAfter: .seconds(90) + .nanoseconds(1))), .success(2),
    ])
    let cache = kind.make(policy: Self.policy(attempts: 9), clock: clock) {
      try await origin.fetch()
    }
    await #expect(throws: Busy.self) { try await cache.request() }
    #expect(cache.statistics.failures == 1)
    #expect(try await cache.request() == 2)
  }

  @Test func `retry advice is respected for at most a minute by default`() {
    #expect(CachePolicy().maximumRetryAfter == .seconds(60))
  }

  @Test func `retry advice for several keys holds for all of them`() async throws {
    let calls = Tally()
    let map = MultiplexerMap<Int, Int>.bulk(policy: Self.policy(), clock: clock) { keys in
      if calls.increment() == 1 { throw Busy(retryAfter: .seconds(30)) }
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    let caller = begin { await map.request([1, 2]) }
    await clock.sleepers(1)
    clock.advance(by: .seconds(29))
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    #expect(try await caller.value.compactMapValues { try? $0.get() } == [1: 1, 2: 2])
    #expect(map.statistics.counts == CacheStatistics(misses: 2, fetches: 1))
  }
}
