import Plexus
import PlexusTesting
import TestSupport
import Testing

/// The removal of values that are too old to be of any use.
@Suite(.fewAtOnce) struct `A value past its stale time to live` {
  let clock = ManualClock()
  let policy = CachePolicy(timeToLive: .seconds(10), staleTimeToLive: .seconds(60))

  /// Keys that fill the map, and are not used otherwise.
  private static let others = 1_000..<1_400

  private func map(
    _ policy: CachePolicy? = nil,
    capacity: CacheCapacity<Int> = .unbounded,
    cacher: (any Cacher<Int>)? = nil,
    onKeyFetch: @escaping @concurrent @Sendable (Int) async throws -> Int = { $0 }
  ) -> MultiplexerMap<Int, Int> {
    MultiplexerMap(
      policy: policy ?? self.policy,
      capacity: capacity,
      cacher: cacher,
      clock: clock,
      onKeyFetch: onKeyFetch
    )
  }

  /// Stores values of new keys, enough of them to examine a small map several times, and removes them again.
  private func storeOthers<Value>(_ value: Value, in map: MultiplexerMap<Int, Value>) async throws {
    for key in Self.others { map.store(value, for: key) }
    try await map.clear(where: { Self.others.contains($0) })
  }

  @Test(.guarantee(.longStaleValuesAreRemoved))
  func `a value past its stale time to live is removed when new keys get values, and not before`()
    async throws
  {
    let map = map()
    for key in 0..<500 { map.store(key, for: key) }
    clock.advance(by: .milliseconds(69_999))
    try await storeOthers(0, in: map)
    #expect(map.count == 500)
    clock.advance(by: .milliseconds(1))
    #expect(map.count == 500, "No task has been waiting for it")
    try await storeOthers(0, in: map)
    #expect(map.count == 0)
    #expect(map.keys.isEmpty)
    #expect(map.cachedValue(7) == nil)
    #expect(map.statistics.evictions == 0)
    #expect(try await map.request(7) == 7)
  }

  @Test(.guarantee(.longStaleValuesAreRemoved), arguments: [true, false])
  func `a value past its stale time to live leaves a map that keeps growing within bounds`(
    isFetched: Bool
  ) async throws {
    let map = map(CachePolicy(timeToLive: .seconds(1), staleTimeToLive: .seconds(1)))
    var most = 0
    for key in 0..<8_000 {
      clock.advance(by: .milliseconds(1))
      if isFetched { _ = try await map.request(key) } else { map.store(key, for: key) }
      most = max(most, map.count)
    }
    // 2,000 values are not too old at any time.
    #expect(most >= 2_000)
    #expect(most <= 2_800)
  }

  @Test(.guarantee(.longStaleValuesAreRemoved))
  func `a value past its stale time to live stays in a map without the limit`()
    async throws
  {
    let map = map(CachePolicy(timeToLive: .seconds(10)))
    for key in 0..<500 { map.store(key, for: key) }
    clock.advance(by: .seconds(100_000_000))
    try await storeOthers(0, in: map)
    #expect(map.count == 500)
  }

  @Test(.guarantee(.longStaleValuesAreRemoved), arguments: [true, false])
  func `a value past its stale time to live is removed without disturbing what is evicted`(
    isByCost: Bool
  ) async throws {
    let map = map(capacity: isByCost ? .cost(100, of: { _ in 1 }) : .count(100))
    var random = SeededRandom(seed: isByCost ? 1 : 2)
    for _ in 0..<5_000 {
      clock.advance(by: .milliseconds(.random(in: 0..<3_000, using: &random)))
      let key = Int.random(in: 0..<300, using: &random)
      if Bool.random(using: &random) {
        map.store(key, for: key)
      } else {
        #expect(try await map.request(key) == key)
      }
      #expect(map.count <= 100)
      #expect(map.keys.count == map.count)
    }
    #expect(map.keys.allSatisfy { map.cachedValue($0) == $0 })
  }

  @Test(.guarantee(.longStaleValuesAreRemoved))
  func `a value past its stale time to live has lost its tags with it`() async throws {
    let map = MultiplexerMap<Int, Int>(
      policy: policy,
      tagging: { [CacheTag("digit:\($0 % 10)")] },
      clock: clock,
      onKeyFetch: { $0 }
    )
    for key in 0..<100 { map.store(key, for: key) }
    clock.advance(by: .seconds(70))
    for key in Self.others { map.store(key, for: key) }
    #expect(map.keys.allSatisfy { Self.others.contains($0) })
    map.store(3, for: 3)
    try await map.clear(tags: ["digit:3"])
    #expect(map.keys.count == 360)
    #expect(!map.keys.contains { $0 % 10 == 3 })
  }

  @Test(.guarantee(.longStaleValuesAreRemoved))
  func `a value past its stale time to live is reported as expired`() async throws {
    let map = map()
    map.store(1, for: 1)
    clock.advance(by: .seconds(70))
    let events = Recorder(map.events())
    for key in Self.others { map.store(key, for: key) }
    var removed: [String] = []
    for event in await events.first(Self.others.count + 1) {
      if case .removed(let key, .expired) = event { removed.append(key ?? "everything") }
    }
    #expect(removed == ["1"])
    #expect(CacheEvent.removed(key: "1", cause: .expired).description == "1 was too old")
  }

  @Test(.guarantee(.longStaleValuesAreRemoved))
  func `a value past its stale time is read from the cacher when the origin is not reachable`()
    async throws
  {
    let map = map(cacher: SimpleCacher()) { key in
      if key == 1 { throw Offline() }
      return key
    }
    map.store(1, for: 1)
    try await map.flush()
    clock.advance(by: .seconds(70))
    for key in Self.others { map.store(key, for: key) }
    #expect(map.cachedValue(1) == nil)
    let response = try await map.response(1)
    #expect(response.value == 1)
    #expect(response.source == .cacher)
  }

  @Test(.guarantee(.longStaleValuesAreRemoved))
  func `a value past its stale time to live is released under no lock`() async throws {
    final class Caller: Sendable {
      let call: @Sendable () -> Void
      init(_ call: @escaping @Sendable () -> Void) { self.call = call }
      deinit { call() }
    }
    let (counts, own) = (Log<Int>(), OwnCache<MultiplexerMap<Int, Caller>>())
    let map = MultiplexerMap<Int, Caller>(policy: policy, clock: clock) { _ in Caller {} }
    own.send(map)
    #expect(await own.first() != nil)
    for key in 0..<20 {
      map.store(
        Caller {
          guard let map = own.elements.first else { return }
          counts.append(map.count)
          map.store(Caller {}, for: 5_000 + key)
        },
        for: key
      )
    }
    clock.advance(by: .seconds(70))
    try await storeOthers(Caller {}, in: map)
    #expect(counts.count == 20)
    #expect(!map.keys.contains { $0 < 20 })
  }

  @Test(.startsProcess) func `a value cannot have a negative stale time to live`() async {
    await #expect(processExitsWith: .failure) {
      var policy = CachePolicy()
      policy.staleTimeToLive = .seconds(-1)
      _ = Multiplexer(policy: policy) { 1 }
    }
  }
}

/// The values that are still of use after their stale time to live.
@Suite(.fewAtOnce) struct `A stale value is kept` {
  let clock = ManualClock()
  let policy = CachePolicy(timeToLive: .seconds(10), staleTimeToLive: .seconds(60))

  private func map(
    _ policy: CachePolicy? = nil,
    cacher: (any Cacher<Int>)? = nil,
    onKeyFetch: @escaping @concurrent @Sendable (Int) async throws -> Int = { $0 }
  ) -> MultiplexerMap<Int, Int> {
    MultiplexerMap(
      policy: policy ?? self.policy,
      cacher: cacher,
      clock: clock,
      onKeyFetch: onKeyFetch
    )
  }

  /// Stores values of new keys, enough of them to examine the map several times.
  ///
  /// - Returns: Whether the value of key 0 was not removed.
  private func keeps(_ map: MultiplexerMap<Int, Int>, _ round: Int = 1) -> Bool {
    for key in 1_000 * round..<1_000 * round + 400 { map.store(key, for: key) }
    return map.cachedValue(0) != nil
  }

  @Test(
    .guarantee(.directivesKeepStaleValues),
    arguments: ["error", "renewal", "policy", "lifetime"]
  )
  func `a stale value is kept for the times of its directives`(directive: String) async throws {
    var directives = CacheDirectives()
    var policy = policy
    switch directive {
    case "error": directives.staleIfError = .seconds(200)
    case "renewal": directives.staleWhileRevalidate = .seconds(200)
    case "policy": policy.staleWhileRevalidate = .seconds(200)
    default: directives.timeToLive = .seconds(150)
    }
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) {
      [directives] (key: Int, _: FetchContext<Int>) in .value(key, directives: directives)
    }
    _ = try await map.request(0)
    clock.advance(by: .seconds(209))
    #expect(keeps(map))
    clock.advance(by: .seconds(1))
    #expect(!keeps(map, 2))
  }

  @Test(.guarantee(.directivesKeepStaleValues))
  func `a stale value is kept for no longer if it requires revalidation`()
    async throws
  {
    let directives = CacheDirectives(
      staleWhileRevalidate: .seconds(900),
      staleIfError: .seconds(900),
      requiresRevalidation: true
    )
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) {
      (key: Int, _: FetchContext<Int>) in .value(key, directives: directives, validator: "v")
    }
    _ = try await map.request(0)
    clock.advance(by: .seconds(69))
    #expect(keeps(map))
    clock.advance(by: .seconds(1))
    #expect(!keeps(map, 2))
  }

  @Test(.guarantee(.directivesKeepStaleValues))
  func `a stale value is kept while it is idle for not so long`()
    async throws
  {
    let policy = CachePolicy(
      timeToLive: .seconds(1_000),
      timeToIdle: .seconds(10),
      staleTimeToLive: .seconds(60)
    )
    let map = map(policy)
    map.store(0, for: 0)
    clock.advance(by: .seconds(9))
    _ = try await map.request(0)
    clock.advance(by: .seconds(69))
    #expect(keeps(map))
    clock.advance(by: .seconds(1))
    #expect(!keeps(map, 2))
  }

  @Test(.guarantee(.directivesKeepStaleValues), arguments: ["stream", "handler", "live"])
  func `a stale value is kept while its key has a subscriber`(kind: String) async throws {
    let map = map()
    map.store(0, for: 0)
    var subscription: (any Sendable)?
    switch kind {
    case "stream": subscription = map.subscription(to: 0)
    case "handler": subscription = map[0].observe { _ in }
    default: subscription = map[0].subscribe(refetching: .every(.seconds(100_000)))
    }
    clock.advance(by: .seconds(70))
    #expect(keeps(map))
    withExtendedLifetime(subscription) {}
    subscription = nil
    #expect(!keeps(map, 2))
  }

  @Test(.guarantee(.directivesKeepStaleValues))
  func `a stale value is kept while a fetch is running, and is the answer if it fails`()
    async throws
  {
    let gate = Gate()
    let map = map { key in
      try await gate.wait()
      throw Offline()
    }
    map.store(0, for: 0)
    clock.advance(by: .seconds(70))
    let caller = begin { try await map.response(0) }
    await gate.arrivals(1)
    #expect(keeps(map))
    gate.open()
    #expect(try await caller.value.isStale)
    #expect(!keeps(map, 2))
  }

  @Test(.guarantee(.directivesKeepStaleValues))
  func `a stale value is kept while its failure is remembered`()
    async throws
  {
    var policy = policy
    policy.failureTimeToLive = .seconds(5)
    let map = map(policy) { _ in throw Broken() }
    map.store(0, for: 0)
    clock.advance(by: .seconds(70))
    await #expect(throws: Broken()) { try await map.request(0) }
    #expect(keeps(map))
    clock.advance(by: .seconds(5))
    #expect(!keeps(map, 2))
  }

  @Test(.guarantee(.directivesKeepStaleValues))
  func `a stale value is kept until its unwritten change was written`()
    async throws
  {
    let map = map(cacher: SimpleCacher())
    map.store(0, for: 0)
    clock.advance(by: .seconds(70))
    #expect(keeps(map))
    try await map.flush()
    #expect(!keeps(map, 2))
  }

  @Test(.guarantee(.directivesKeepStaleValues))
  func `a stale value is kept while an optimistic update is not committed`()
    async throws
  {
    let map = map()
    let gate = Gate()
    map.store(0, for: 0)
    let update = begin {
      try await map.update(0, optimistically: { $0 += 1 }, commit: { try await gate.wait() })
    }
    await gate.arrivals(1)
    clock.advance(by: .seconds(70))
    #expect(keeps(map))
    gate.open()
    try await update.value
    #expect(!keeps(map, 2))
  }

  @Test(.guarantee(.directivesKeepStaleValues))
  func `a stale value is kept if it is the only one of its cache`() async throws {
    let cache = Multiplexer<Int>(policy: policy, clock: clock) { throw Offline() }
    cache.store(1)
    clock.advance(by: .seconds(100_000))
    #expect(cache.cachedValue == 1)
    #expect(try await cache.request() == 1)
  }
}
