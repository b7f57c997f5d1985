import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A refresh ahead` {
  let clock = ManualClock()
  let policy = CachePolicy(timeToLive: .seconds(60), refreshAhead: .seconds(10))

  @Test(
    .guarantee(.refreshAheadRenewsOnce),
    arguments: CacheKind.allCases,
    [(49, 1), (50, 2), (59, 2)]
  )
  func `a refresh ahead begins with the first request in the given time before the end`(
    kind: CacheKind,
    expected: (seconds: Int, fetches: Int)
  ) async throws {
    let origin = Tally()
    let cache = kind.make(policy: policy, clock: clock) { origin.increment() }
    let states = Recorder(cache.subscribe())
    _ = try await cache.request()
    clock.advance(by: .seconds(expected.seconds))
    let response = try await cache.response()
    #expect(response.value == 1)
    #expect(!response.isStale)
    #expect(response.age == .seconds(expected.seconds))
    if expected.fetches == 2 { _ = await states.first(5) }
    #expect(try await cache.request() == expected.fetches)
    #expect(cache.statistics.fetches == expected.fetches)
    #expect(cache.statistics.hits == 2)
  }

  @Test(.guarantee(.refreshAheadRenewsOnce), arguments: CacheKind.allCases)
  func `a refresh ahead is one fetch, and requests meanwhile get the value at once`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let origin = Tally()
    let cache = kind.make(policy: policy, clock: clock) {
      let number = origin.increment()
      if number > 1 { try await gate.wait() }
      return number
    }
    let states = Recorder(cache.subscribe())
    _ = try await cache.request()
    clock.advance(by: .seconds(55))
    for _ in 0..<5 { #expect(try await cache.request() == 1) }
    #expect(await cache.requestTogether() == 1)
    await gate.arrivals(1)
    gate.open()
    #expect(await states.first(5).last?.name == "loaded 2")
    clock.advance(by: .seconds(49))
    #expect(try await cache.request() == 2)
    #expect(origin.value == 2)
  }

  @Test(.guarantee(.refreshAheadRenewsOnce), arguments: CacheKind.allCases)
  func `a refresh ahead that fails is tried again after half of the remaining time`(
    kind: CacheKind
  ) async throws {
    let origin = ScriptedFetcher<Int>([
      .success(1), .failure(Broken()), .failure(Broken()), .success(4),
    ])
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    let states = Recorder(cache.subscribe())
    _ = try await cache.request()
    clock.advance(by: .seconds(50))
    #expect(try await cache.request() == 1)
    #expect(await states.first(5).last?.name == "failed Broken 1")
    clock.advance(by: .seconds(4))
    #expect(try await cache.request() == 1)
    // Counted before the request returns, unlike the calls of the origin.
    #expect(cache.statistics.fetches == 2)
    clock.advance(by: .seconds(1))
    #expect(try await cache.request() == 1)
    #expect(await states.first(7).last?.name == "failed Broken 1")
    #expect(cache.statistics.fetches == 3)
    clock.advance(by: .seconds(2))
    #expect(try await cache.request() == 1)
    #expect(cache.statistics.fetches == 3)
    clock.advance(by: .seconds(3))
    #expect(try await cache.request() == 4)
  }

  @Test(.guarantee(.refreshAheadRenewsOnce))
  func `a refresh ahead goes by the time to live that came with the value`() async throws {
    let cache = CacheKind.map.makeInformed(Int.self, policy: policy, clock: clock) { context in
      .value((context.previousValue ?? 0) + 1, timeToLive: .seconds(20))
    }
    let states = Recorder(cache.subscribe())
    _ = try await cache.request()
    clock.advance(by: .seconds(9))
    _ = try await cache.request()
    #expect(cache.statistics.fetches == 1)
    clock.advance(by: .seconds(1))
    _ = try await cache.request()
    _ = await states.first(5)
    #expect(cache.statistics.fetches == 2)
  }

  @Test func `a refresh ahead renews many keys with one fetch`() async throws {
    let origin = BulkOrigin(isOpen: true)
    let map = origin.makeMap(policy: policy, clock: clock)
    _ = await map.request([1, 2, 3])
    clock.advance(by: .seconds(50))
    #expect(outcomes(await map.request([1, 2, 3])) == [1: "101", 2: "102", 3: "103"])
    await origin.gate.arrivals(2)
    #expect(origin.calls == [[1, 2, 3], [1, 2, 3]])
  }

  @Test func `a refresh ahead of a value without an end never begins`() async throws {
    let policy = CachePolicy(timeToLive: .seconds(Int64.max), refreshAhead: .seconds(Int64.max))
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) { $0 }
    _ = try await map.request(1)
    clock.advance(by: .seconds(100))
    _ = try await map.request(1)
    #expect(map.cachedValue(1) == 1)
  }
}
