import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A time to idle` {
  let clock = ManualClock()
  let policy = CachePolicy(timeToLive: .seconds(1_000), timeToIdle: .seconds(60))

  @Test(.guarantee(.idleValuesAreStale), arguments: CacheKind.allCases, [(59, 1), (60, 2)])
  func `a time to idle ends when a value was not requested for its length`(
    kind: CacheKind,
    expected: (seconds: Int, fetches: Int)
  ) async throws {
    let origin = Tally()
    let cache = kind.make(policy: policy, clock: clock) { origin.increment() }
    _ = try await cache.request()
    clock.advance(by: .seconds(40))
    _ = try await cache.request()
    clock.advance(by: .seconds(expected.seconds))
    #expect(try await cache.request() == expected.fetches)
  }

  @Test(
    .guarantee(.idleValuesAreStale),
    arguments: CacheKind.allCases,
    ["response", "store", "update", "several"]
  )
  func `a time to idle begins again with every use`(kind: CacheKind, use: String) async throws {
    let origin = Tally()
    let cache = kind.make(policy: policy, clock: clock) { origin.increment() }
    _ = try await cache.request()
    clock.advance(by: .seconds(40))
    switch use {
    case "response": _ = try await cache.response()
    case "store": cache.store(1)
    case "several": _ = await cache.requestTogether()
    default: cache.update { $0 = 1 }
    }
    clock.advance(by: .seconds(59))
    #expect(try await cache.request() == 1)
    clock.advance(by: .seconds(60))
    #expect(try await cache.request() == 2)
  }

  @Test(.guarantee(.idleValuesAreStale), arguments: CacheKind.allCases)
  func `a time to idle continues during reads, subscriptions and prefetches`(
    kind: CacheKind
  ) async throws {
    let origin = Tally()
    let cache = kind.make(policy: policy, clock: clock) { origin.increment() }
    _ = try await cache.request()
    clock.advance(by: .seconds(40))
    #expect(cache.cachedValue == 1)
    let states = Recorder(cache.subscribe())
    cache.prefetch()
    #expect(await states.first(1).map(\.name) == ["loaded 1"])
    clock.advance(by: .seconds(20))
    #expect(cache.cachedValue == 1)
    #expect(try await cache.request() == 2)
  }

  @Test(.guarantee(.idleValuesAreStale), arguments: CacheKind.allCases)
  func `a time to idle leaves a stale value, which the next request does not make fresh`(
    kind: CacheKind
  ) async throws {
    let origin = ScriptedFetcher<Int>([.success(1), .failure(Offline()), .failure(Broken())])
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    _ = try await cache.request()
    clock.advance(by: .seconds(60))
    let response = try await cache.response()
    #expect(response.value == 1)
    #expect(response.isStale)
    #expect(response.error is Offline)
    await #expect(throws: Broken.self) { try await cache.request() }
    #expect(cache.cachedValue == 1)
  }

  @Test(.guarantee(.idleValuesAreStale), arguments: CacheKind.allCases)
  func `a time to idle leaves a stale value, which an update does not make fresh`(
    kind: CacheKind
  ) async throws {
    let origin = Tally()
    let cache = kind.make(policy: policy, clock: clock) { origin.increment() }
    _ = try await cache.request()
    clock.advance(by: .seconds(60))
    #expect(cache.update { $0 += 10 } == 11)
    #expect(try await cache.request() == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `a time to idle does not shorten the time in which a stale value is renewed`(
    kind: CacheKind
  ) async throws {
    var policy = policy
    policy.staleWhileRevalidate = .seconds(30)
    let origin = Tally()
    let cache = kind.make(policy: policy, clock: clock) { origin.increment() }
    let states = Recorder(cache.subscribe())
    _ = try await cache.request()
    clock.advance(by: .seconds(89))
    #expect(try await cache.request() == 1)
    _ = await states.first(5)
    #expect(try await cache.request() == 2)
    clock.advance(by: .seconds(90))
    #expect(try await cache.request() == 3)
  }

  @Test(.guarantee(.idleValuesAreStale), arguments: 0..<20)
  func `a time to idle is kept for each key, whatever is added and removed`(
    seed: UInt64
  ) async throws {
    var random = SeededRandom(seed: seed)
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) { $0 }
    var lastUses: [Int: Int] = [:]
    var now = 0
    var fetches = 0
    for _ in 0..<400 {
      let key = Int.random(in: 0..<10, using: &random)
      switch Int.random(in: 0..<8, using: &random) {
      case 0..<4:
        if lastUses[key].map({ now >= $0 + 60 }) ?? true { fetches += 1 }
        lastUses[key] = now
        _ = try await map.request(key)
      case 4:
        map.store(key, for: key)
        lastUses[key] = now
      case 5:
        try await map.clear(key)
        lastUses[key] = nil
      default:
        let seconds = Int.random(in: 1..<40, using: &random)
        now += seconds
        clock.advance(by: .seconds(seconds))
      }
      try #require(map.statistics.fetches == fetches)
    }
  }
}
