import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A soft timeout` {
  let clock = ManualClock()
  let gate = Gate()

  private func policy(_ change: (inout CachePolicy) -> Void = { _ in }) -> CachePolicy {
    var policy = CachePolicy(timeToLive: .seconds(60), softTimeout: .seconds(1))
    change(&policy)
    return policy
  }

  /// A cache with the stale value 1, whose next fetch waits at the gate and returns 2.
  private func staleCache(
    _ kind: CacheKind,
    _ change: (inout CachePolicy) -> Void = { _ in }
  ) async throws -> CacheUnderTest<Int> {
    let origin = Tally()
    let cache = kind.make(policy: policy(change), clock: clock) { [gate] in
      let number = origin.increment()
      if number > 1 { try await gate.wait() }
      return number
    }
    _ = try await cache.request()
    clock.advance(by: .seconds(60))
    return cache
  }

  @Test(.guarantee(.softTimeoutReturnsTheStaleValue), arguments: CacheKind.allCases)
  func `a soft timeout answers with the stale value, and the fetch continues`(
    kind: CacheKind
  ) async throws {
    let cache = try await staleCache(kind)
    let caller = begin { try await cache.response() }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    let response = try await caller.value
    #expect(response.value == 1)
    #expect(response.isStale)
    #expect(response.source == .memory)
    #expect(response.age == .seconds(61))
    let states = Recorder(cache.subscribe())
    gate.open()
    #expect(await states.first(2).map(\.name) == ["loading 1", "loaded 2"])
    #expect(try await cache.request() == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `a soft timeout ends nothing if the fetch is faster`(kind: CacheKind) async throws {
    let cache = try await staleCache(kind)
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    await clock.sleepers(1)
    gate.open()
    #expect(try await caller.value == 2)
  }

  @Test(.guarantee(.softTimeoutReturnsTheStaleValue), arguments: CacheKind.allCases)
  func `a soft timeout of one caller lets the fetch continue, though all others leave`(
    kind: CacheKind
  ) async throws {
    let cache = try await staleCache(kind) { $0.whenUnobserved = .cancel }
    let first = begin { try await cache.request() }
    await clock.sleepers(1)
    clock.advance(by: .milliseconds(500))
    let second = begin { try await cache.request() }
    await clock.sleepers(2)
    clock.advance(by: .milliseconds(500))
    #expect(try await first.value == 1)
    second.cancel()
    await #expect(throws: CancellationError.self) { try await second.value }
    let states = Recorder(cache.subscribe())
    gate.open()
    #expect(await states.first(2).map(\.name) == ["loading 1", "loaded 2"])
  }

  @Test(arguments: CacheKind.allCases)
  func `a soft timeout without a value does not end the wait`(kind: CacheKind) async throws {
    let cache = kind.make(policy: policy(), clock: clock) { [gate] in
      try await gate.wait()
      return 1
    }
    let caller = begin { try await cache.request() }
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    gate.open()
    #expect(try await caller.value == 1)
  }

  @Test(.guarantee(.softTimeoutReturnsTheStaleValue), arguments: CacheKind.allCases)
  func `a request that insists on a newer value has no soft timeout`(kind: CacheKind) async throws {
    let cache = try await staleCache(kind)
    let caller = begin { try await cache.refresh().request() }
    await gate.arrivals(1)
    #expect(clock.sleeperCount == 0)
    gate.open()
    #expect(try await caller.value == 2)
  }

  @Test(.guarantee(.softTimeoutReturnsTheStaleValue))
  func `a soft timeout does not answer with a value that requires revalidation`() async throws {
    let origin = Tally()
    let cache = CacheKind.map.makeInformed(Int.self, policy: policy(), clock: clock) { [gate] _ in
      let number = origin.increment()
      if number > 1 { try await gate.wait() }
      return .value(number, directives: CacheDirectives(requiresRevalidation: true))
    }
    _ = try await cache.request()
    clock.advance(by: .seconds(60))
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    gate.open()
    #expect(try await caller.value == 2)
  }

  @Test func `a soft timeout answers with a stored copy that was read before the fetch`()
    async throws
  {
    let map = MultiplexerMap<Int, Int>(
      policy: policy {
        $0.timeToLive = .zero
        $0.cacherRead = .beforeFetch
      },
      cacher: SimpleCacher([1: 11]),
      clock: clock
    ) { [gate] key in
      try await gate.wait()
      return key
    }
    let caller = begin { try await map.response(1) }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    let response = try await caller.value
    #expect(response.value == 11)
    #expect(response.source == .cacher)
    #expect(response.isStale)
    gate.open()
  }

  @Test func `a soft timeout answers each of several keys that has a stale value`() async throws {
    let map = MultiplexerMap<Int, Int>(policy: policy(), clock: clock) { [gate] key in
      if key < 3 { try await gate.wait() }
      return 200 + key
    }
    for key in 1...2 { map.store(100 + key, for: key) }
    clock.advance(by: .seconds(60))
    let caller = begin { await map.request([1, 2, 3]) }
    await gate.arrivals(2)
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    #expect(outcomes(try await caller.value) == [1: "101", 2: "102", 3: "203"])
    gate.open()
  }

  @Test(arguments: CacheKind.allCases)
  func `a soft timeout leaves a cancelled caller its error`(kind: CacheKind) async throws {
    let cache = try await staleCache(kind)
    let caller = begin { try await cache.request() }
    await clock.sleepers(1)
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    gate.open()
  }
}

@Suite(.fewAtOnce) struct `The limits that come with a value` {
  let clock = ManualClock()
  let gate = Gate()

  /// A cache with the value 1, whose next fetch waits at the gate and returns 2.
  private func cache(
    _ kind: CacheKind,
    _ directives: CacheDirectives
  ) async throws -> CacheUnderTest<Int> {
    let policy = CachePolicy(staleWhileRevalidate: .seconds(90_000), softTimeout: .seconds(1))
    let cache = kind.makeInformed(policy: policy, clock: clock) {
      [gate] (context: FetchContext<Int>) in
      guard context.previousValue != nil else { return .value(1, directives: directives) }
      try await gate.wait()
      return .value(2)
    }
    #expect(try await cache.request() == 1)
    return cache
  }

  @Test(.guarantee(.directivesLimitSoftTimeouts), arguments: CacheKind.allCases, [true, false])
  func `limits that come with a value hold for what a soft timeout returns`(
    kind: CacheKind,
    isTogether: Bool
  ) async throws {
    let cache = try await cache(
      kind,
      CacheDirectives(timeToLive: .seconds(10), staleWhileRevalidate: .seconds(20))
    )
    // A day later, its time is long over.
    clock.advance(by: .seconds(86_400))
    let caller = begin { isTogether ? await cache.requestTogether() : try await cache.request() }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    gate.open()
    #expect(try await caller.value == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `limits that come with a value let a soft timeout return it outdated within its time`(
    kind: CacheKind
  ) async throws {
    let cache = try await cache(
      kind,
      CacheDirectives(timeToLive: .seconds(10), staleWhileRevalidate: .seconds(20))
    )
    clock.advance(by: .seconds(28))
    cache.refresh()
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    #expect(try await caller.value == 1)
    gate.open()
  }

  @Test(arguments: CacheKind.allCases)
  func `limits of zero let a soft timeout return nothing that is stale`(
    kind: CacheKind
  ) async throws {
    let cache = try await cache(
      kind,
      CacheDirectives(timeToLive: .seconds(10), staleWhileRevalidate: .zero)
    )
    clock.advance(by: .seconds(10))
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    gate.open()
    #expect(try await caller.value == 2)
  }

  @Test(.guarantee(.directivesLimitSoftTimeouts))
  func `limits that come with a value hold for a stored copy that a soft timeout returns`()
    async throws
  {
    let cacher = SimpleCacher()
    let directives = CacheDirectives(
      timeToLive: .seconds(10),
      staleWhileRevalidate: .seconds(20)
    )
    var entry = CacheEntry(value: 1, storedAt: .seconds(1))
    entry.directives = directives
    try await cacher.store(["7": entry])
    var policy = CachePolicy(softTimeout: .seconds(1))
    policy.cacherRead = .beforeFetch
    let map = MultiplexerMap<Int, Int>(policy: policy, cacher: cacher, clock: clock) {
      [gate] _ in
      try await gate.wait()
      return 2
    }
    let caller = begin { try await map.request(7) }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    gate.open()
    #expect(try await caller.value == 2)
  }
}
