import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A live subscription of a key` {
  typealias Map = MultiplexerMap<Int, Int>

  /// A named call of a map that affects its key 7.
  struct Command: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let run: @Sendable (Map) async throws -> Void

    init(_ name: String, _ run: @escaping @Sendable (Map) async throws -> Void) {
      testDescription = name
      self.run = run
    }
  }

  static let refreshes = [
    Command("refresh(key)") { $0.refresh(7) },
    Command("refresh(keys)") { $0.refresh([1, 7]) },
    Command("refresh(where:)") { $0.refresh { $0 == 7 } },
    Command("refresh(tags:)") { $0.refresh(tags: ["all"]) },
    Command("refreshAll()") { $0.refreshAll() },
    Command("an entry's refresh()") { $0[7].refresh() },
  ]

  static let clears = [
    Command("clear(key)") { try await $0.clear(7) },
    Command("clear(keys)") { try await $0.clear([1, 7]) },
    Command("clear(where:)") { try await $0.clear { $0 == 7 } },
    Command("clear()") { try await $0.clear() },
    Command("clearMemory(key)") { $0.clearMemory(7) },
    Command("clearMemory()") { $0.clearMemory() },
    Command("an entry's clear()") { try await $0[7].clear() },
    Command("an entry's clearMemory()") { $0[7].clearMemory() },
  ]

  @Test(.guarantee(.clearsCauseLiveFetches), arguments: refreshes + clears)
  func `a live subscription of a key fetches after each refresh or clear of it, and no other key`(
    command: Command
  ) async throws {
    let origin = LiveOrigin()
    let map = origin.map()
    map.store(-8, for: 8)
    let states = map[7].subscription(refetching: .whenStale)
    await states.loaded(1)
    try await command.run(map)
    await states.loaded(2)
    #expect(origin.keys.entries == [7, 7])
  }

  @Test(
    .guarantee(.clearsCauseLiveFetches),
    arguments: clears.filter { !$0.testDescription.contains("Memory") }
  )
  func `a live subscription of a key is not given the result of a fetch that was cleared`(
    command: Command
  ) async throws {
    let origin = LiveOrigin(isHeldUp: true)
    let map = origin.map()
    let states = map[7].subscription(refetching: .whenStale, bufferingPolicy: .unbounded)
    await origin.gate.arrivals(1)
    try await command.run(map)
    await origin.fetches.first(2)
    origin.gate.open()
    await states.loaded(2)
    #expect(map.cachedValue(7) == 2)
    #expect(map.statistics.fetches == 2)
  }

  @Test(.guarantee(.shortestIntervalCounts))
  func `a live subscription of a key fetches for itself, whatever other keys do`()
    async throws
  {
    let origin = LiveOrigin()
    let map = origin.map(CachePolicy(timeToLive: .seconds(1_000)))
    let signals = Messenger<Void>()
    let ticking = map[7].subscription(refetching: .every(.seconds(10)))
    await ticking.loaded(1)
    let signalled = map[8].subscription(refetching: .on(signals.subscription()))
    await signalled.loaded(2)
    signals.send()
    await signalled.loaded(3)
    await origin.clock.sleepers(1)
    origin.clock.advance(by: .seconds(10))
    await ticking.loaded(4)
    signals.send()
    await signalled.loaded(5)
    try await map.clear(8)
    await signalled.loaded(6)
    #expect(origin.keys.entries == [7, 8, 8, 7, 8, 8])
  }

  // MARK: - Signing out

  @Test(.guarantee(.clearsCauseLiveFetches))
  func `live subscriptions rest after clearAll, each until its own key is requested`()
    async throws
  {
    let origin = LiveOrigin()
    let repository = MuxRepository()
    let map = origin.map().register(in: repository)
    let signals = Messenger<Void>()
    var states: [Subscription<LoadState<Int>>] = []
    for (index, key) in [7, 8].enumerated() {
      let stream = map[key].subscription(
        refetching: .whenStale.and(.every(.seconds(10))).and(.on(signals.subscription()))
      )
      await stream.loaded(index + 1)
      states.append(stream)
    }
    try await repository.clearAll()
    #expect(map.count == 0)
    for command in Self.refreshes + Self.clears { try await command.run(map) }
    #expect(origin.clock.nextDeadline == nil, "no timer is left")
    #expect(map.statistics.fetches == 2)

    #expect(try await map.request(8) == 3)
    await states[1].loaded(3)
    try await map.clear(7)
    #expect(map.statistics.fetches == 3, "the other key still rests")
    let another = map[7].subscription(refetching: .whenStale)
    await another.loaded(4)
    await states[0].loaded(4)

    try await repository.clearAll()
    signals.send()
    await origin.fetches.first(6)
    #expect(Set(origin.keys.entries.suffix(2)) == [7, 8])
    withExtendedLifetime(another) {}
  }

  @Test(.guarantee(.clearsCauseLiveFetches))
  func `a live subscription of a key rests after its tags were cleared in a repository`()
    async throws
  {
    let origin = LiveOrigin()
    let repository = MuxRepository()
    let map = origin.map().register(in: repository)
    let signals = Messenger<Void>()
    let states = map[7].subscription(refetching: .whenStale.and(.on(signals.subscription())))
    await states.loaded(1)
    try await repository.clear(tags: ["other"])
    #expect(map[7].cachedValue == 1)
    try await repository.clear(tags: ["all"])
    #expect(map[7].current.name == "unknown")
    map.refresh(7)
    #expect(map.statistics.fetches == 1)
    #expect(origin.clock.nextDeadline == nil)
    signals.send()
    await states.loaded(2)
  }

  /// The reasons for which a live subscription ends its rest.
  enum End: String, CaseIterable, Sendable {
    case request, signal, subscriber
  }

  @Test(.guarantee(.clearsCauseLiveFetches), arguments: CacheKind.allCases, End.allCases)
  func `a live subscription is given nothing of a fetch that was running at clearAll`(
    kind: CacheKind,
    end: End
  ) async throws {
    let origin = LiveOrigin(isHeldUp: true)
    let repository = MuxRepository()
    let cache = LiveCache(kind, origin)
    cache.register(in: repository)
    let signals = Messenger<Void>()
    let states = cache.subscription(
      refetching: .whenStale.and(.on(signals.subscription())),
      bufferingPolicy: .unbounded
    )
    await origin.gate.arrivals(1)
    let caller = begin { try await cache.request() }
    try await repository.clearAll()
    origin.gate.open()
    #expect(try await caller.value == 1, "the callers of the detached fetch get its result")
    #expect(cache.current.name == "unknown")
    #expect(cache.statistics.fetches == 1, "the live subscription waits")
    var another: Subscription<LoadState<Int>>?
    switch end {
    case .request: _ = try await cache.request()
    case .signal: signals.send()
    case .subscriber: another = cache.subscription(refetching: .whenStale)
    }
    var seen: [String] = []
    for await state in states {
      seen.append(state.name)
      if case .loaded(2) = state { break }
    }
    #expect(seen == ["unknown", "loading", "loaded 2"])
    withExtendedLifetime(another) {}
  }

  // MARK: - Failures

  /// The reasons to fetch again after a failure.
  enum Reason: String, CaseIterable, Sendable {
    case signal, interval, refresh
  }

  @Test(.guarantee(.failedLiveFetchesWait), arguments: CacheKind.allCases, Reason.allCases)
  func `a live subscription waits after a failure for a signal, an interval or a refresh only`(
    kind: CacheKind,
    reason: Reason
  ) async {
    let origin = LiveOrigin()
    origin.fail(1, 3)
    let cache = LiveCache(kind, origin)
    let signals = Messenger<Void>()
    var refetching = Refetching.whenStale
    if reason == .signal { refetching = refetching.and(.on(signals.subscription())) }
    if reason == .interval { refetching = refetching.and(.every(.seconds(100))) }
    let states = cache.subscription(refetching: refetching, bufferingPolicy: .unbounded)
    func happen() async {
      switch reason {
      case .signal:
        signals.send()
      case .refresh:
        cache.refresh()
      case .interval:
        await origin.clock.sleepers(1)
        while let next = origin.clock.nextDeadline, next.offset < .seconds(100 * tick) {
          origin.clock.advance(to: next)
          await origin.clock.sleepers(1)
        }
        origin.clock.advance(by: .seconds(100 * tick) - origin.clock.now.offset)
        tick += 1
      }
    }
    var tick = 1
    await states.failed()
    #expect(cache.statistics.fetches == 1)
    await happen()
    await states.loaded(2)
    #expect(cache.statistics.fetches == 2)
    cache.refresh()
    await states.failed()
    // The failure keeps the value, which now goes stale without being fetched again.
    #expect(cache.current.value == 2)
    origin.clock.advance(by: .seconds(60))
    #expect(cache.statistics.fetches == 3)
    await happen()
    await states.loaded(4)
  }

  // MARK: - Reasons

  @Test(.guarantee(.shortestIntervalCounts), arguments: CacheKind.allCases, 0..<8)
  func `a live subscription has every reason that was combined, and no other`(
    kind: CacheKind,
    reasons: Int
  ) async {
    let (isWhenStale, ticks, isSignalled) = (reasons & 1 > 0, reasons & 2 > 0, reasons & 4 > 0)
    let origin = LiveOrigin()
    let cache = LiveCache(kind, origin, CachePolicy(timeToLive: .seconds(25)))
    let signals = Messenger<Void>()
    var parts: [Refetching] = []
    if isWhenStale { parts.append(.whenStale) }
    if ticks { parts.append(.every(.seconds(40))) }
    if isSignalled { parts.append(.on(signals.subscription())) }
    guard let first = parts.first else { return }
    let states = cache.subscription(refetching: parts.dropFirst().reduce(first) { $0.and($1) })
    await states.loaded(1)
    var fetches = 1
    func expectFetch(_ isExpected: Bool) async {
      if isExpected {
        fetches += 1
        await states.loaded(fetches)
      }
      #expect(cache.statistics.fetches == fetches)
    }
    signals.send()
    #expect(signals.subscriberCount == (isSignalled ? 1 : 0))
    await expectFetch(isSignalled)
    for (seconds, isDue, wake) in [
      (25, isWhenStale, isWhenStale ? 25 : 40), (15, ticks, ticks ? 40 : 50),
    ] {
      if isWhenStale || ticks { await origin.sleeps(until: wake) }
      origin.clock.advance(by: .seconds(seconds))
      await expectFetch(isDue)
    }
    if !isWhenStale, !ticks { #expect(origin.clock.nextDeadline == nil) }
  }

  @Test(.guarantee(.shortestIntervalCounts), arguments: CacheKind.allCases)
  func `live subscriptions of several intervals follow the shortest, with one fetch for all`(
    kind: CacheKind
  ) async {
    let origin = LiveOrigin()
    let cache = LiveCache(kind, origin, CachePolicy(timeToLive: .seconds(20)))
    var streams = [20, 10, 30].map { seconds in
      cache.subscription(refetching: .whenStale.and(.every(.seconds(seconds))))
    }
    await streams[0].loaded(1)
    // At 20 and 30 seconds, several intervals end at once. No value goes stale.
    for number in 2...4 {
      await origin.clock.sleepers(1)
      #expect(origin.clock.nextDeadline?.offset == .seconds(10 * (number - 1)))
      origin.clock.advance(by: .seconds(10))
      for stream in streams { await stream.loaded(number) }
      #expect(cache.statistics.fetches == number)
    }
    streams.remove(at: 1)
    // From now on, the interval of 20 seconds, and the time to live, which ends first.
    await origin.sleeps(until: 40)
    origin.clock.advance(by: .seconds(10))
    for stream in streams { await stream.loaded(5) }
    await origin.sleeps(until: 60)
    origin.clock.advance(by: .seconds(20))
    for stream in streams { await stream.loaded(6) }
    #expect(cache.statistics.fetches == 6, "stale, and three intervals at once")
  }

  @Test func `a live subscription is kept up to date when another one of its key has ended`()
    async throws
  {
    let origin = LiveOrigin()
    let map = origin.map()
    let states = map[7].subscription(refetching: .whenStale)
    await states.loaded(1)
    var other: Subscription<LoadState<Int>>? = map[7].subscription(refetching: .whenStale)
    withExtendedLifetime(other) {}
    other = nil
    origin.gate.close()
    map.refresh(7)
    try #require(map[7].current.isLoading)
    origin.gate.open()
    await states.loaded(2)
  }

  // MARK: - Memory

  @Test(.guarantee(.nothingRunsWithoutLiveSubscriptions))
  func `a live subscription of a key does not keep its map, and ends with it`() async {
    let origin = LiveOrigin()
    var map: MultiplexerMap<Int, Int>? = origin.map()
    weak let weakMap = map
    guard let states = map?[7].subscription(refetching: .whenStale.and(.every(.seconds(1)))) else {
      return
    }
    await states.loaded(1)
    map = nil
    #expect(weakMap == nil)
    for await _ in states {}
    origin.clock.advance(by: .seconds(100))
    #expect(origin.fetches.count == 1)
  }

  @Test(.guarantee(.liveKeysAreNotEvicted))
  func `a key with a live subscription counts towards no capacity, and is evictable afterwards`()
    async throws
  {
    let clock = ManualClock()
    let map = MultiplexerMap<Int, Int>(capacity: .count(2), clock: clock) { $0 }
    var live: [Subscription<LoadState<Int>>] = []
    for key in 1...4 {
      let stream = map[key].subscription(refetching: .whenStale)
      await stream.loaded(key)
      live.append(stream)
    }
    map.store([11: 11, 12: 12])
    #expect(map.keys.sorted() == [1, 2, 3, 4, 11, 12])
    for key in 100..<200 { map.store(key, for: key) }
    #expect(map.keys.filter { $0 < 10 }.sorted() == [1, 2, 3, 4])
    #expect(map.count == 6)
    live = []
    #expect(map.count == 2, "the limit applies to them at once")
    for key in 200..<300 { map.store(key, for: key) }
    #expect(map.keys.allSatisfy { $0 >= 100 })
  }
}
