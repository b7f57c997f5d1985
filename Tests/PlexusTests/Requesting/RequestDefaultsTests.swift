import Plexus
import PlexusTesting
import TestSupport
import Testing

/// The behavior of caches with nothing but a fetch.
@Suite(.fewAtOnce) struct `The defaults of caches` {
  @Test(.guarantee(.mapsStayWithinCapacity)) func `a map keeps all requested values by default`()
    async throws
  {
    let map = MultiplexerMap<Int, Int>(clock: ManualClock()) { $0 }
    let informed = MultiplexerMap<Int, Int>(clock: ManualClock()) { key, _ in .value(key) }
    let bulk = MultiplexerMap<Int, Int>.bulk(clock: ManualClock()) { keys in
      Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    for map in [map, informed, bulk] {
      for key in 0..<5_000 { map.store(key, for: key) }
      #expect((0..<5_000).allSatisfy { map.cachedValue($0) == $0 })
      #expect(map.statistics.evictions == 0)
    }
  }

  @Test(.guarantee(.mapsStayWithinCapacity))
  func `a map with a cacher keeps all requested values by default`()
    async throws
  {
    let cacher = SimpleCacher()
    let map = MultiplexerMap<Int, Int>(cacher: cacher, clock: ManualClock()) { $0 }
    let informed = MultiplexerMap<Int, Int>(cacher: cacher, clock: ManualClock()) { key, _ in
      .value(key)
    }
    let bulk = MultiplexerMap<Int, Int>.bulk(cacher: cacher, clock: ManualClock()) { keys in
      Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    for map in [map, informed, bulk] {
      for key in 0..<5_000 { map.store(key, for: key) }
      #expect((0..<5_000).allSatisfy { map.cachedValue($0) == $0 })
      #expect(map.statistics.evictions == 0)
    }
  }

  @Test(.guarantee(.policyDefaultsAreDocumented))
  func `a value is fresh for half an hour by default`()
    async throws
  {
    let clock = ManualClock()
    let tally = Tally()
    let cache = Multiplexer(clock: clock) { tally.increment() }
    let map = MultiplexerMap<Int, Int>(clock: clock) { _ in tally.increment() }
    #expect(try await cache.request() == 1)
    #expect(try await map.request(1) == 2)
    clock.advance(by: .seconds(30 * 60) - .nanoseconds(1))
    #expect(try await cache.request() == 1)
    #expect(try await map.request(1) == 2)
    clock.advance(by: .nanoseconds(1))
    #expect(try await cache.request() == 3)
    #expect(try await map.request(1) == 4)
  }

  @Test(.guarantee(.fetchesReceiveThePreviousValue))
  func `without directives a fetch has the time to live of the policy and no validator`()
    async throws
  {
    let clock = ManualClock()
    var policy = CachePolicy()
    policy.timeToLive = .seconds(10)
    let contexts = RecordedChannel<FetchContext<Int>>()
    let cache = Multiplexer<Int>(policy: policy, clock: clock) { context in
      contexts.send(context)
      return context.previousValue == nil ? .value(1) : .notModified()
    }
    for _ in 0..<3 {
      #expect(try await cache.request() == 1)
      clock.advance(by: .seconds(9))
      #expect(try await cache.response().source == .memory)
      clock.advance(by: .seconds(1))
    }
    let seen = await contexts.recorder.first(3)
    #expect(seen.map(\.previousValue) == [nil, 1, 1])
    #expect(seen.allSatisfy { $0.validator == nil && $0.attempt == 1 })
    let entry = CacheEntry(value: 1, storedAt: .seconds(5))
    #expect(entry.validator == nil)
    #expect(entry.timeToLive == nil)
  }

  @Test(.guarantee(.cachesRegisterWeakly)) func `caches register in the repository of the process`()
    async throws
  {
    let cache = Multiplexer { 1 }.register()
    let map = MultiplexerMap<Int, Int> { $0 }.register()
    let alone = Multiplexer { 1 }
    cache.store(1)
    map.store(1, for: 1)
    alone.store(1)
    MuxRepository.shared.clearMemory()
    #expect(cache.cachedValue == nil)
    #expect(map.cachedValue(1) == nil)
    #expect(alone.cachedValue == 1)
    MuxRepository.shared.unregister(cache)
    MuxRepository.shared.unregister(map)
  }

  @Test(.guarantee(.retryDelaysDouble), arguments: CacheKind.allCases)
  func `the waits between attempts differ by the jitter and no more`(kind: CacheKind) async throws {
    var policy = CachePolicy()
    policy.retry = .exponential(attempts: 2, base: .seconds(10), cap: .seconds(60), jitter: 0.5)
    var waits: [Duration] = []
    for _ in 0..<40 {
      let clock = ManualClock()
      let cache = kind.make(Int.self, policy: policy, clock: clock) { throw Broken() }
      let caller = begin { try await cache.request() }
      await clock.sleepers(1)
      let deadline = try #require(clock.nextDeadline)
      waits.append(deadline.offset)
      clock.advance(by: .seconds(15))
      await #expect(throws: Broken()) { try await caller.value }
    }
    #expect(waits.allSatisfy { (.seconds(5) ... .seconds(15)).contains($0) })
    // All forty are on one side once in a million million runs.
    #expect(waits.contains { $0 < .seconds(10) })
    #expect(waits.contains { $0 > .seconds(10) })
  }
}
