import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `What comes with a value about keeping it` {
  let clock = ManualClock()

  /// A cache whose first fetch returns 1 with directives; later ones follow the script.
  private func cache(
    _ kind: CacheKind,
    _ directives: CacheDirectives,
    policy: CachePolicy = CachePolicy(),
    then steps: [Result<Int, any Error>] = [.success(2)]
  ) async throws -> CacheUnderTest<Int> {
    let origin = ScriptedFetcher<Int>(steps)
    let cache = kind.makeInformed(policy: policy, clock: clock) { (context: FetchContext<Int>) in
      if context.previousValue == nil { return .value(1, directives: directives) }
      return .value(try await origin.fetch())
    }
    #expect(try await cache.request() == 1)
    return cache
  }

  private func policy(_ change: (inout CachePolicy) -> Void) -> CachePolicy {
    var policy = CachePolicy()
    change(&policy)
    return policy
  }

  private let minute = CacheDirectives(timeToLive: .seconds(60))

  @Test(arguments: CacheKind.allCases)
  func `the time to live that comes with a value replaces that of the policy`(
    kind: CacheKind
  ) async throws {
    let cache = try await cache(kind, minute, policy: policy { $0.expiryJitter = 1 })
    clock.advance(by: .seconds(59))
    #expect(try await cache.request() == 1)
    clock.advance(by: .seconds(1))
    #expect(try await cache.request() == 2)
  }

  @Test(arguments: CacheKind.allCases, [(nil, 30), (10, 10), (100, 100), (0, 0)] as [(Int?, Int)])
  func `a directive says how long a value is returned while it is renewed, or else the policy`(
    kind: CacheKind,
    time: (own: Int?, seconds: Int)
  ) async throws {
    var directives = minute
    directives.staleWhileRevalidate = time.own.map { .seconds($0) }
    let patient = policy { $0.staleWhileRevalidate = .seconds(30) }
    if time.seconds > 0 {
      let cache = try await cache(kind, directives, policy: patient)
      clock.advance(by: .seconds(60 + time.seconds - 1))
      let response = try await cache.response()
      #expect(response.value == 1)
      #expect(response.isStale)
    }
    let cache = try await cache(kind, directives, policy: patient)
    clock.advance(by: .seconds(60 + time.seconds))
    #expect(try await cache.response().value == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `a directive says how long a value is used after any failure, whatever the policy says`(
    kind: CacheKind
  ) async throws {
    var directives = minute
    directives.staleIfError = .seconds(100)
    let cache = try await cache(
      kind,
      directives,
      policy: policy { $0.usesCachedValue = { _ in false } },
      then: [.failure(Broken())]
    )
    clock.advance(by: .seconds(159))
    for _ in 0..<2 {
      let response = try await cache.response()
      #expect(response.value == 1)
      #expect(response.isStale)
      #expect(response.source == .memory)
      #expect(response.error is Broken)
    }
    #expect(cache.statistics.fetches == 3, "Its deadline is not extended")
    clock.advance(by: .seconds(1))
    await #expect(throws: Broken.self) { try await cache.request() }
    #expect(cache.cachedValue == 1, "It is not dropped")
  }

  @Test(arguments: CacheKind.allCases)
  func `a directive permits use after errors and forbids none: later the policy decides`(
    kind: CacheKind
  ) async throws {
    var directives = minute
    directives.staleIfError = .seconds(100)
    let cache = try await cache(
      kind,
      directives,
      then: [.failure(Offline()), .failure(Broken())]
    )
    clock.advance(by: .seconds(1_000))
    #expect(try await cache.request() == 1)
    await #expect(throws: Broken.self) { try await cache.request() }
  }

  @Test(arguments: CacheKind.allCases, [true, false])
  func `a directive lets a value be used after a failure of the origin, not after its answer`(
    kind: CacheKind,
    isOriginFailure: Bool
  ) async throws {
    var directives = minute
    directives.staleIfError = .seconds(100)
    let error = RefusedFetch(isOriginFailure: isOriginFailure)
    let cache = try await cache(kind, directives, then: [.failure(error)])
    clock.advance(by: .seconds(60))
    if isOriginFailure {
      #expect(try await cache.request() == 1)
    } else {
      await #expect(throws: RefusedFetch.self) { try await cache.request() }
    }
  }

  @Test(.guarantee(.clientErrorsEndCachedValues), arguments: CacheKind.allCases, [true, false])
  func `directives do not bring back a stale value whose origin has answered that it is gone`(
    kind: CacheKind,
    isAllowed: Bool
  ) async throws {
    var directives = minute
    directives.staleIfError = .seconds(1_000)
    directives.staleWhileRevalidate = .seconds(1_000)
    let gone = RefusedFetch(isOriginFailure: false)
    let cache = try await cache(
      kind,
      directives,
      policy: policy { $0.usesCachedValue = { error in isAllowed || error is Offline } },
      then: [.failure(gone), .failure(Broken()), .failure(Offline())]
    )
    // A tick while it is fresh does not make it unusable.
    clock.advance(by: .seconds(30))
    if isAllowed {
      #expect(try await cache.refresh().request() == 1)
    } else {
      await #expect(throws: RefusedFetch.self) { try await cache.refresh().request() }
    }
    clock.advance(by: .seconds(60))
    for _ in 0..<2 {
      if isAllowed {
        #expect(try await cache.request() == 1)
      } else {
        await #expect(throws: (any Error).self) { try await cache.request() }
      }
    }
  }

  @Test(arguments: CacheKind.allCases)
  func `a directive lets a value be used after a remembered failure only for its time`(
    kind: CacheKind
  ) async throws {
    var directives = minute
    directives.staleIfError = .seconds(100)
    let cache = try await cache(
      kind,
      directives,
      policy: policy { $0.failureTimeToLive = .seconds(1_000) },
      then: [.failure(Broken())]
    )
    clock.advance(by: .seconds(60))
    #expect(try await cache.request() == 1)
    clock.advance(by: .seconds(99))
    #expect(try await cache.response().error is Broken)
    clock.advance(by: .seconds(1))
    await #expect(throws: Broken.self) { try await cache.request() }
    #expect(cache.statistics.fetches == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `a directive can forbid to use a stale value, whatever else allows it`(
    kind: CacheKind
  ) async throws {
    var directives = minute
    directives.staleWhileRevalidate = .seconds(1_000)
    directives.staleIfError = .seconds(1_000)
    directives.requiresRevalidation = true
    let generous = policy {
      $0.staleWhileRevalidate = .seconds(1_000)
      $0.failureTimeToLive = .seconds(10)
      $0.usesCachedValue = { _ in true }
    }
    let steps: [Result<Int, any Error>] = [.failure(Offline()), .success(2)]
    let cache = try await cache(kind, directives, policy: generous, then: steps)
    clock.advance(by: .seconds(60))
    await #expect(throws: Offline.self) { try await cache.request() }
    await #expect(throws: Offline.self, "It is remembered") { try await cache.request() }
    #expect(cache.cachedValue == 1, "It is not dropped")
    clock.advance(by: .seconds(10))
    // The fetch receives it: otherwise it would return 1 again.
    #expect(try await cache.request() == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `a directive that requires revalidation forbids nothing while the value is fresh`(
    kind: CacheKind
  ) async throws {
    var directives = minute
    directives.requiresRevalidation = true
    let cache = try await cache(kind, directives, then: [.failure(Offline())])
    #expect(try await cache.refresh().request() == 1)
    clock.advance(by: .seconds(60))
    await #expect(throws: Offline.self) { try await cache.request() }
  }

  @Test(arguments: CacheKind.allCases)
  func `directives hold again for an unchanged value, but for a new time to live`(
    kind: CacheKind
  ) async throws {
    let fetches = Tally()
    let cache = kind.makeInformed(clock: clock) { (_: FetchContext<Int>) in
      switch fetches.increment() {
      case 1:
        .value(
          1,
          directives: CacheDirectives(timeToLive: .seconds(60), staleWhileRevalidate: .seconds(30)),
          validator: "tag"
        )
      case 2: .notModified()
      default: .notModified(timeToLive: .seconds(5))
      }
    }
    _ = try await cache.request()
    clock.advance(by: .seconds(90))
    #expect(try await cache.response().source == .fetch)
    clock.advance(by: .seconds(59))
    #expect(try await !cache.response().isStale)
    clock.advance(by: .seconds(31))
    #expect(try await cache.response().source == .fetch)
    clock.advance(by: .seconds(34))
    #expect(try await cache.response().isStale)
    #expect(fetches.value >= 3)
  }

  @Test(arguments: CacheKind.allCases, [nil, "new"])
  func `a revalidation replaces all directives, and the validator if it brings a new one`(
    kind: CacheKind,
    validator: String?
  ) async throws {
    let contexts = RecordedChannel<FetchContext<Int>>()
    let cache = kind.makeInformed(clock: clock) { (context: FetchContext<Int>) in
      contexts.send(context)
      guard context.previousValue != nil else {
        return .value(
          1,
          directives: CacheDirectives(timeToLive: .seconds(60), requiresRevalidation: true),
          validator: "old"
        )
      }
      return .notModified(
        directives: CacheDirectives(staleIfError: .seconds(10)),
        validator: validator
      )
    }
    _ = try await cache.request()
    clock.advance(by: .seconds(60))
    #expect(try await cache.response().source == .fetch)
    // The time to live of the policy applies again.
    clock.advance(by: .seconds(1_799))
    #expect(try await cache.response().source == .memory)
    clock.advance(by: .seconds(1))
    #expect(try await cache.request() == 1)
    let told = await contexts.recorder.first(3).map(\.validator)
    #expect(told == [nil, "old", validator ?? "old"])
  }

  @Test(arguments: CacheKind.allCases)
  func `an answer that nothing has changed is a failure without a value to revalidate`(
    kind: CacheKind
  ) async throws {
    let cache = kind.makeInformed(Int.self, clock: clock) { _ in
      .notModified(directives: CacheDirectives())
    }
    await #expect(throws: MultiplexerError.notModifiedWithoutValue) { try await cache.request() }
  }

  @Test(
    arguments: CacheKind.allCases,
    [Duration.seconds(Int64.max), .seconds(Int64.min), .zero, .nanoseconds(-1)]
  )
  func `the times of directives may be of any length`(
    kind: CacheKind,
    length: Duration
  ) async throws {
    let directives = CacheDirectives(
      timeToLive: length,
      staleWhileRevalidate: length,
      staleIfError: length
    )
    let cache = try await cache(kind, directives, then: [.failure(Broken())])
    clock.advance(by: .seconds(1_000_000))
    if length > .zero {
      #expect(try await cache.response().source == .memory)
      #expect(try await cache.refresh().response().error is Broken)
    } else {
      await #expect(throws: Broken.self) { try await cache.request() }
    }
  }

  @Test(arguments: CacheKind.allCases)
  func `a value that is stored from outside has no directives`(kind: CacheKind) async throws {
    var directives = minute
    directives.requiresRevalidation = true
    let cache = try await cache(kind, directives, then: [.failure(Offline())])
    cache.store(7)
    clock.advance(by: .seconds(60))
    #expect(try await cache.response().source == .memory)
    clock.advance(by: .seconds(1_740))
    #expect(try await cache.request() == 7)
  }

  @Test(arguments: [false, true])
  func `directives hold for a value that was evicted while it was renewed`(
    requiresRevalidation: Bool
  ) async throws {
    let gate = Gate()
    let directives = CacheDirectives(
      timeToLive: .seconds(60),
      staleIfError: .seconds(100),
      requiresRevalidation: requiresRevalidation
    )
    let map = MultiplexerMap<Int, Int>(capacity: .count(1), clock: clock) {
      (_: Int, context: FetchContext<Int>) in
      guard context.previousValue != nil else { return .value(1, directives: directives) }
      try await gate.wait()
      throw Broken()
    }
    _ = try await map.request(0)
    clock.advance(by: .seconds(60))
    let caller = begin { try await map.response(0) }
    await gate.arrivals(1)
    map.store(7, for: 7)
    #expect(map.cachedValue(0) == nil)
    gate.open()
    if requiresRevalidation {
      await #expect(throws: Broken.self) { try await caller.value }
    } else {
      let response = try await caller.value
      #expect(response.value == 1)
      #expect(response.isStale)
      #expect(map.cachedValue(0) == nil, "It does not come back")
    }
  }

  @Test(arguments: CacheKind.allCases)
  func `directives hide no fetch that requests itself`(kind: CacheKind) async throws {
    let own = Guarded<CacheUnderTest<Int>?>(nil)
    let directives = CacheDirectives(timeToLive: .seconds(60), staleIfError: .seconds(100))
    let cache = kind.makeInformed(clock: clock) { (context: FetchContext<Int>) in
      if context.previousValue == nil { return .value(1, directives: directives) }
      return .value(try await #require(own.withLock { $0 }).request())
    }
    own.withLock { $0 = cache }
    #expect(try await cache.request() == 1)
    clock.advance(by: .seconds(60))
    await #expect(throws: MultiplexerError.self) { try await cache.request() }
    own.withLock { $0 = nil }
  }
}

/// An error of an origin that has failed, or has answered.
private struct RefusedFetch: OriginFailure {
  let isOriginFailure: Bool
}
