import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A value` {
  let clock = ManualClock()

  private func policy(_ change: (inout CachePolicy) -> Void = { _ in }) -> CachePolicy {
    var policy = CachePolicy()
    policy.timeToLive = .seconds(60)
    change(&policy)
    return policy
  }

  @Test(
    .guarantee(.expiredValuesAreFetchedOnce),
    arguments: CacheKind.allCases,
    [(59, 1), (60, 2), (61, 2)]
  )
  func `a value is fresh up to its time to live and not at it`(
    kind: CacheKind,
    expected: (seconds: Int, fetches: Int)
  ) async throws {
    let origin = Tally()
    let cache = kind.make(policy: policy(), clock: clock) { origin.increment() }
    _ = try await cache.request()
    clock.advance(by: .seconds(expected.seconds))
    #expect(try await cache.request() == expected.fetches)
  }

  @Test(.guarantee(.timeComesFromTheInjectedClock), arguments: CacheKind.allCases)
  func `a value lives by the clock that was injected, from the end of its fetch`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .success(2)], gate: gate)
    let cache = kind.make(policy: policy(), clock: clock) { try await origin.fetch() }
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    clock.advance(by: .seconds(1_000))
    gate.open()
    _ = try await caller.value
    clock.advance(by: .seconds(59))
    let response = try await cache.response()
    #expect(response.value == 1)
    #expect(response.source == .memory)
    // It is as old as the start of its fetch, and fresh from the end.
    #expect(response.age == .seconds(1_059))
    #expect(!response.isStale)
  }

  @Test(arguments: CacheKind.allCases, [Duration.zero, .seconds(-1), .seconds(Int64.min)])
  func `a value is never fresh without a time to live`(
    kind: CacheKind,
    timeToLive: Duration
  ) async throws {
    let origin = Tally()
    let policy = policy { $0.timeToLive = timeToLive }
    let cache = kind.make(policy: policy, clock: clock) { origin.increment() }
    #expect(try await cache.request() == 1)
    #expect(try await cache.request() == 2)
    #expect(cache.cachedValue == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `a value never expires with the longest time to live there is`(kind: CacheKind) async throws
  {
    let origin = Tally()
    let policy = policy { $0.timeToLive = .seconds(Int64.max) }
    let cache = kind.make(policy: policy, clock: clock) { origin.increment() }
    _ = try await cache.request()
    clock.advance(by: .seconds(1_000_000_000))
    #expect(try await cache.request() == 1)
  }

  @Test(.guarantee(.expiredValuesAreFetchedOnce), arguments: CacheKind.allCases)
  func `a value that expires under load is fetched once`(kind: CacheKind) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .success(2), .success(3)], gate: gate)
    let cache = kind.make(policy: policy(), clock: clock) { try await origin.fetch() }
    gate.open()
    _ = try await cache.request()
    gate.close()
    clock.advance(by: .seconds(60))
    let callers = (0..<100).map { _ in begin { try await cache.request() } }
    await gate.arrivals(2)
    gate.open()
    for caller in callers { #expect(try await caller.value == 2) }
    #expect(origin.count == 2)
  }

  @Test(.guarantee(.expiredValuesAreFetchedOnce))
  func `a value expires at another moment than others with jitter, and within its bounds`()
    async throws
  {
    let policy = policy { $0.expiryJitter = 0.1 }
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) { _ in 1 }
    for key in 0..<200 { _ = try await map.request(key) }

    func misses(after seconds: Int) async throws -> Int {
      clock.advance(by: .seconds(seconds))
      let before = map.statistics.misses
      for key in 0..<200 { _ = try await map.request(key) }
      return map.statistics.misses - before
    }
    #expect(try await misses(after: 53) == 0, "Nothing expires more than 10 % early")
    let onTime = try await misses(after: 7)
    #expect((30...170).contains(onTime), "About half of them, not \(onTime), are early")
  }

  @Test(.guarantee(.expiredValuesAreFetchedOnce), arguments: CacheKind.allCases)
  func `a stale value is returned at once while one fetch renews it`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .success(2)], gate: gate)
    let policy = policy { $0.staleWhileRevalidate = .seconds(30) }
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    gate.open()
    _ = try await cache.request()
    gate.close()
    clock.advance(by: .seconds(60))

    for _ in 0..<3 {
      let response = try await cache.response()
      #expect(response.value == 1)
      #expect(response.isStale)
      #expect(response.source == .memory)
      #expect(response.age == .seconds(60))
      #expect(response.error == nil)
    }
    #expect(cache.statistics.counts == CacheStatistics(staleHits: 3, misses: 1, fetches: 2))

    let states = Recorder(cache.subscribe())
    await gate.arrivals(2)
    gate.open()
    _ = await states.first(2)
    #expect(try await cache.response().value == 2)
    #expect(origin.count == 2)
  }

  @Test(
    .guarantee(.expiredValuesAreFetchedOnce),
    arguments: CacheKind.allCases,
    [(89, true), (90, false)]
  )
  func `a stale value is returned for its time and not longer`(
    kind: CacheKind,
    expected: (seconds: Int, isStale: Bool)
  ) async throws {
    let origin = Tally()
    let policy = policy { $0.staleWhileRevalidate = .seconds(30) }
    let cache = kind.make(policy: policy, clock: clock) { origin.increment() }
    _ = try await cache.request()
    clock.advance(by: .seconds(expected.seconds))
    let response = try await cache.response()
    #expect(response.isStale == expected.isStale)
    #expect(response.value == (expected.isStale ? 1 : 2))
  }

  @Test(.guarantee(.failuresKeepTheValue), arguments: CacheKind.allCases)
  func `a value keeps its deadline when its renewal in the background fails`(
    kind: CacheKind
  ) async throws {
    let origin = ScriptedFetcher<Int>([.success(1), .failure(Broken()), .success(3)])
    let policy = policy { $0.staleWhileRevalidate = .seconds(30) }
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    _ = try await cache.request()
    clock.advance(by: .seconds(60))
    let states = Recorder(cache.subscribe())
    #expect(try await cache.request() == 1)
    _ = await states.first(3)
    #expect(cache.cachedValue == 1)
    clock.advance(by: .seconds(30))
    #expect(try await cache.request() == 3)
  }

  @Test(.guarantee(.fetchesReceiveThePreviousValue), arguments: CacheKind.allCases)
  func `a value keeps exactly the time to live that its fetch gives`(kind: CacheKind) async throws {
    let origin = Tally()
    let policy = policy { $0.expiryJitter = 1 }
    let cache = kind.makeInformed(policy: policy, clock: clock) { (_: FetchContext<Int>) in
      .value(origin.increment(), timeToLive: .seconds(5))
    }
    _ = try await cache.request()
    clock.advance(by: .nanoseconds(4_999_999_999))
    #expect(try await cache.request() == 1)
    clock.advance(by: .nanoseconds(1))
    #expect(try await cache.request() == 2)
  }

  @Test(
    .guarantee(.timeToLiveContinuesDuringSleep),
    arguments: CacheKind.allCases,
    ["policy", "fetch"]
  )
  func `a time to live of a millisecond ends after a millisecond of an injected clock`(
    kind: CacheKind,
    source: String
  ) async throws {
    let origin = Tally()
    let policy = policy { $0.timeToLive = source == "policy" ? .milliseconds(1) : .seconds(60) }
    let cache = kind.makeInformed(policy: policy, clock: clock) { (_: FetchContext<Int>) in
      .value(origin.increment(), timeToLive: source == "policy" ? nil : .milliseconds(1))
    }
    _ = try await cache.request()
    clock.advance(by: .microseconds(999))
    #expect(try await cache.request() == 1)
    clock.advance(by: .microseconds(1))
    #expect(try await cache.request() == 2)
  }

  @Test(.guarantee(.timeToLiveContinuesDuringSleep), arguments: CacheKind.allCases)
  func `a time to live continues while no task runs and an injected clock jumps, as in sleep`(
    kind: CacheKind
  ) async throws {
    let origin = Tally()
    let cache = kind.make(policy: policy { $0.softTimeout = .seconds(1) }, clock: clock) {
      origin.increment()
    }
    _ = try await cache.request()
    let night = clock.now.advanced(by: .seconds(8 * 3_600))
    clock.advance(to: night)
    #expect(try await cache.request() == 2)
    #expect(try await cache.response().age == .zero)
  }

  @Test(.guarantee(.fetchesReceiveThePreviousValue), arguments: CacheKind.allCases)
  func `a value that has not changed counts as fetched just now`(kind: CacheKind) async throws {
    let asked = RecordedChannel<FetchContext<String>>()
    let cache = kind.makeInformed(clock: clock) { (context: FetchContext<String>) in
      asked.send(context)
      guard context.validator == nil else { return .notModified() }
      return .value("a", timeToLive: .seconds(5), validator: "tag")
    }
    _ = try await cache.request()
    clock.advance(by: .seconds(5))
    for _ in 0..<2 {
      let renewed = try await cache.response()
      #expect(renewed.value == "a")
      #expect(renewed.source == .fetch)
      clock.advance(by: .nanoseconds(4_999_999_999))
      #expect(try await cache.response().source == .memory)
      clock.advance(by: .nanoseconds(1))
    }
    let contexts = await asked.recorder.first(3)
    #expect(contexts.map(\.validator) == [nil, "tag", "tag"])
    #expect(contexts.map(\.previousValue) == [nil, "a", "a"])
  }

  @Test(arguments: CacheKind.allCases)
  func `a value that has not changed may be given another time to live`(
    kind: CacheKind
  ) async throws {
    let origin = Tally()
    let cache = kind.makeInformed(clock: clock) { (context: FetchContext<Int>) in
      origin.increment()
      guard context.previousValue == nil else { return .notModified(timeToLive: .seconds(2)) }
      return .value(7, timeToLive: .seconds(5))
    }
    _ = try await cache.request()
    clock.advance(by: .seconds(5))
    _ = try await cache.request()
    clock.advance(by: .seconds(2))
    _ = try await cache.request()
    #expect(origin.value == 3)
  }

  @Test(.guarantee(.fetchesReceiveThePreviousValue), arguments: CacheKind.allCases)
  func `a fetch without a value cannot answer that nothing has changed`(
    kind: CacheKind
  ) async throws {
    let cache = kind.makeInformed(Int.self, clock: clock) { _ in .notModified() }
    await #expect(throws: MultiplexerError.notModifiedWithoutValue) { try await cache.request() }
    #expect(cache.statistics.failures == 1)
  }
}
