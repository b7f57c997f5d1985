import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce, .timeLimit(.minutes(20))) struct `The statistics of fetches` {
  let clock = ManualClock()

  @Test func `have a hit rate, which is 0 before the first request`() async throws {
    let map = MultiplexerMap<Int, Int>(clock: clock) { $0 }
    #expect(map.statistics.hitRate == 0)
    for _ in 0..<4 { _ = try await map.request(1) }
    #expect(map.statistics.hitRate == 0.75)
    let sum = CacheStatistics(hits: 3, staleHits: 1, misses: 1, joins: 1)
    #expect(sum.hitRate == 0.5)
  }

  @Test(arguments: CacheKind.allCases)
  func `have the time of all fetches and the longest, failures and waits included`(
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

  @Test func `count a fetch of several keys once`() async throws {
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

  @Test(arguments: CacheKind.allCases)
  func `count confirmations, which the response reports`(kind: CacheKind) async throws {
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

  @Test func `add up, with the longer of the longest fetches`() {
    let left = CacheStatistics(revalidations: 1, fetchTime: .seconds(2), longestFetch: .seconds(3))
    let right = CacheStatistics(revalidations: 4, fetchTime: .seconds(5), longestFetch: .seconds(1))
    let sum = left + right
    #expect(sum.revalidations == 5)
    #expect(sum.fetchTime == .seconds(7))
    #expect(sum.longestFetch == .seconds(3))
  }

  @Test func `of a repository are summed by id, or by type`() async throws {
    let repository = MuxRepository()
    let first = MultiplexerMap<Int, Int>(id: "users") { $0 }.register(in: repository)
    let second = Multiplexer(id: "users") { 1 }.register(in: repository)
    let third = Multiplexer { "Ada" }.register(in: repository)
    first.store(1, for: 1)
    _ = (try await first.request(1), try await second.request(), try await third.request())
    let statistics = repository.statistics
    #expect(statistics["users"]?.hits == 1)
    #expect(statistics["users"]?.misses == 1)
    #expect(statistics["Multiplexer<String>"]?.misses == 1)
    #expect(statistics.count == 2)
    withExtendedLifetime((first, second, third)) {}
  }
}

@Suite(.fewAtOnce, .timeLimit(.minutes(20))) struct `The causes of removals` {
  @Test func `are reported as events`() async throws {
    let map = MultiplexerMap<Int, Int>(capacity: .count(1), clock: ManualClock()) {
      (key: Int, _: FetchContext<Int>) in key == 3 ? .transient(3) : .value(key)
    }
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
}
