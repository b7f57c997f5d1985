import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `The statistics of fetches` {
  let clock = ManualClock()

  @Test(.guarantee(.statisticsCoverFetches))
  func `the statistics of fetches have a hit rate, which is 0 before the first request`()
    async throws
  {
    let map = MultiplexerMap<Int, Int>(clock: clock) { $0 }
    #expect(map.statistics.hitRate == 0)
    for _ in 0..<4 { _ = try await map.request(1) }
    #expect(map.statistics.hitRate == 0.75)
    let sum = CacheStatistics(hits: 3, staleHits: 1, misses: 1, joins: 1)
    #expect(sum.hitRate == 0.5)
  }

  @Test(.guarantee(.statisticsCoverFetches), arguments: CacheKind.allCases)
  func `the statistics have the time of all fetches and the longest, with failures and waits`(
    kind: CacheKind
  ) async throws {
    let policy = CachePolicy(
      retry: .exponential(attempts: 2, base: .seconds(5), cap: .seconds(5), jitter: 0)
    )
    let cache = kind.make(Int.self, policy: policy, clock: clock) { throw Broken() }
    let caller = begin { try await cache.request() }
    await clock.sleepers(1)
    clock.advance(by: .seconds(5))
    await #expect(throws: Broken.self) { try await caller.value }
    #expect(cache.statistics.fetchTime == .seconds(5))
    let again = begin { try await cache.request() }
    await clock.sleepers(1)
    clock.advance(by: .seconds(7))
    await #expect(throws: Broken.self) { try await again.value }
    #expect(cache.statistics.fetchTime == .seconds(12))
    #expect(cache.statistics.longestFetch == .seconds(7))
  }

  @Test(.guarantee(.statisticsCoverFetches), .guarantee(.cacheEventsNameOutcomes))
  func `the statistics of fetches count a fetch of several keys once`() async throws {
    let origin = BulkOrigin()
    let map = origin.makeMap(clock: clock)
    let caller = begin { await map.request([1, 2, 3]) }
    await origin.gate.arrivals(1)
    clock.advance(by: .seconds(3))
    let events = Recorder(map.events())
    origin.gate.open()
    _ = try await caller.value
    #expect(map.statistics.fetchTime == .seconds(3))
    for event in await events.first(3) {
      guard case .fetched(_, .value, .seconds(3)) = event else {
        Issue.record("\(event)")
        continue
      }
    }
  }

  @Test(.guarantee(.statisticsCoverFetches), arguments: CacheKind.allCases)
  func `the statistics of fetches count confirmations, which the response reports`(
    kind: CacheKind
  ) async throws {
    let cache = kind.makeInformed(
      Int.self,
      policy: CachePolicy(timeToLive: .seconds(60)),
      clock: clock
    ) { context in context.previousValue == nil ? .value(1) : .notModified() }
    #expect(try await !cache.response().isRevalidated)
    clock.advance(by: .seconds(60))
    let response = try await cache.response()
    #expect(response.isRevalidated)
    #expect(response.source == .fetch)
    #expect(try await !cache.response().isRevalidated)
    #expect(cache.statistics.revalidations == 1)
  }

  @Test func `the statistics of fetches add up, with the longer of the longest fetches`() {
    let left = CacheStatistics(revalidations: 1, fetchTime: .seconds(2), longestFetch: .seconds(3))
    let right = CacheStatistics(revalidations: 4, fetchTime: .seconds(5), longestFetch: .seconds(1))
    let sum = left + right
    #expect(sum.revalidations == 5)
    #expect(sum.fetchTime == .seconds(7))
    #expect(sum.longestFetch == .seconds(3))
  }

  @Test(.guarantee(.statisticsCoverFetches))
  func `the statistics of fetches of a repository are summed by id, or by type`()
    async throws
  {
    let repository = MuxRepository()
    let first = MultiplexerMap<Int, Int>(id: "users") { $0 }.register(in: repository)
    let second = Multiplexer(id: "users") { 1 }.register(in: repository)
    let third = Multiplexer { "Ada" }.register(in: repository)
    first.store(1, for: 1)
    _ = (try await first.request(1), try await second.request(), try await third.request())
    for _ in 0..<3 { _ = try await second.request() }
    let statistics = repository.statistics
    #expect(statistics["users"]?.hits == 4, "one of the map and three of the multiplexer")
    #expect(statistics["users"]?.misses == 1)
    #expect(statistics["users"] == first.statistics + second.statistics)
    #expect(statistics["Multiplexer<String>"]?.misses == 1)
    #expect(statistics.count == 2)
    withExtendedLifetime((first, second, third)) {}
  }
}

@Suite(.fewAtOnce) struct `The causes of removals` {
  let clock = ManualClock()

  private func map(_ capacity: CacheCapacity<Int> = .unbounded) -> MultiplexerMap<Int, Int> {
    MultiplexerMap<Int, Int>(
      capacity: capacity,
      tagging: { key in [CacheTag("digit:\(key % 10)")] },
      clock: clock,
      onKeyFetch: { (key: Int, _: FetchContext<Int>) in
        key == 3 ? .transient(3) : .value(key)
      }
    )
  }

  /// The removals among a number of events.
  private func removals(
    _ events: Recorder<CacheEvent>,
    among count: Int
  ) async -> [String: CacheEvent.RemovalCause] {
    var removals: [String: CacheEvent.RemovalCause] = [:]
    for event in await events.first(count) {
      if case .removed(let key, let cause) = event { removals[key ?? "all"] = cause }
    }
    return removals
  }

  @Test(.guarantee(.cacheEventsNameOutcomes)) func `the causes of removals are reported as events`()
    async throws
  {
    let map = map(.count(1))
    let events = Recorder(map.events())
    map.store(1, for: 1)
    map.store(2, for: 2)
    map.clearMemory(map.keys[0])
    map.clearMemory()
    map.store(3, for: 3)
    _ = try await map.refresh(3).request(3)
    try await map.clear(3)
    try await map.clear()
    var causes: [CacheEvent.RemovalCause] = []
    for event in await events.first(10) {
      if case .removed(_, let cause) = event { causes.append(cause) }
    }
    #expect(
      causes == [.capacity, .memoryCleared, .memoryCleared, .transient, .cleared, .cleared]
    )
  }

  @Test(.guarantee(.cacheEventsNameOutcomes))
  func `the causes of removals name each key that was evicted`() async {
    let map = map(.count(3))
    map.store([1: 1, 2: 2, 3: 3])
    let events = Recorder(map.events())
    for key in 11...15 { map.store(key, for: key) }
    let removals = await removals(events, among: 10)
    #expect(removals.count == 5)
    #expect(removals.values.allSatisfy { $0 == .capacity })
    #expect(removals.keys.allSatisfy { key in !map.keys.contains { "\($0)" == key } })
    #expect(map.statistics.evictions == 5)
  }

  @Test(.guarantee(.cacheEventsNameOutcomes))
  func `removals by tags, by a condition or by name name each key as cleared`() async throws {
    let map = map()
    map.store([1: 1, 11: 11, 2: 2, 4: 4, 5: 5, 6: 6])
    let events = Recorder(map.events())
    try await map.clear(tags: ["digit:1"])
    #expect(await removals(events, among: 2) == ["1": .cleared, "11": .cleared])
    try await map.clear { $0 == 2 }
    try await map.clear([4, 5])
    #expect(
      await removals(events, among: 5)
        == ["1": .cleared, "11": .cleared, "2": .cleared, "4": .cleared, "5": .cleared]
    )
  }

  @Test(.guarantee(.cacheEventsNameOutcomes))
  func `a clear of everything reports one removal of all keys`()
    async throws
  {
    let repository = MuxRepository()
    let map = map().register(in: repository)
    let cache = Multiplexer<Int>(id: "one", clock: clock) { 1 }.register(in: repository)
    map.store([1: 1, 2: 2])
    cache.store(1)
    let events = (Recorder(map.events()), Recorder(cache.events()))
    try await repository.clearAll()
    map.store(3, for: 3)
    cache.store(2)
    #expect(
      await events.0.first(2).map(\.description) == ["everything was cleared", "3 was stored"]
    )
    #expect(
      await events.1.first(2).map(\.description) == ["everything was cleared", "one was stored"]
    )
    let memory = Recorder(map.events())
    repository.clearMemory()
    #expect(await removals(memory, among: 1) == ["all": .memoryCleared])
  }
}

@Suite(.fewAtOnce) struct `The event of a fetch` {
  let clock = ManualClock()

  @Test(.guarantee(.cacheEventsNameOutcomes), arguments: CacheKind.allCases)
  func `the event of a fetch has its duration with all attempts, if it succeeds and if it fails`(
    kind: CacheKind
  ) async throws {
    let policy = CachePolicy(
      retry: .exponential(attempts: 2, base: .seconds(5), cap: .seconds(5), jitter: 0)
    )
    let origin = ScriptedFetcher<Int>([
      .failure(Broken()), .failure(Broken()), .failure(Broken()), .success(1),
    ])
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    let events = Recorder(cache.occurrences())
    for seconds in [6, 7] {
      let caller = begin { try await cache.request() }
      await clock.sleepers(1)
      clock.advance(by: .seconds(seconds))
      _ = await caller.result
    }
    let both = await events.first(2)
    guard case .fetchFailed(_, let error, .seconds(6)) = both[0],
      case .fetched(_, .value, .seconds(7)) = both[1]
    else {
      Issue.record("\(both)")
      return
    }
    #expect(error is Broken)
  }

  @Test(.guarantee(.cacheEventsNameOutcomes), arguments: CacheKind.allCases)
  func `the event of a fetch tells a value, a confirmation and a value that is not kept apart`(
    kind: CacheKind
  ) async throws {
    let number = Tally()
    let cache = kind.makeInformed(Int.self, clock: clock) { _ in
      switch number.increment() {
      case 1: .value(1)
      case 2: .notModified()
      default: .transient(3)
      }
    }
    let events = Recorder(cache.occurrences())
    for _ in 0..<3 { _ = try await cache.refresh().request() }
    var outcomes: [CacheEvent.FetchOutcome] = []
    for event in await events.first(4) {
      if case .fetched(_, let outcome, _) = event { outcomes.append(outcome) }
    }
    #expect(outcomes == [.value, .notModified, .transient])
  }

  @Test(.guarantee(.cacheEventsNameOutcomes))
  func `the event of a fetch of several keys has the outcome of each key`()
    async throws
  {
    let isFirst = Guarded(true)
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock) {
      keys -> [Int: Result<FetchResult<Int>, any Error>] in
      let isFirst = isFirst.withLock { isFirst in
        defer { isFirst = false }
        return isFirst
      }
      return Dictionary(
        uniqueKeysWithValues: keys.map { key in
          switch key {
          case 1: (key, .success(isFirst ? .value(1) : .notModified()))
          case 2: (key, .success(.transient(2)))
          default: (key, .failure(Broken()))
          }
        }
      )
    }
    let events = Recorder(map.events())
    _ = await map.request([1, 2, 3])
    let response = try await map.refresh([1, 2, 3]).response(1)
    #expect(response.isRevalidated)
    let lines = await events.first(4).map { event in
      switch event {
      case .fetched(let key, let outcome, _): "\(key) \(outcome)"
      case .fetchFailed(let key, _, _): "\(key) failed"
      default: "\(event)"
      }
    }
    #expect(lines.prefix(3).sorted() == ["1 value", "2 transient", "3 failed"])
    #expect(lines.last == "1 notModified")
  }
}
