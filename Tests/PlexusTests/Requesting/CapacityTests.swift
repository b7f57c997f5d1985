import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A map of limited capacity` {
  let clock = ManualClock()

  /// The number of keys from 0 on that have a value.
  private func count<Value>(_ map: MultiplexerMap<Int, Value>, of keys: Int) -> Int {
    (0..<keys).count { map.cachedValue($0) != nil }
  }

  @Test(.guarantee(.mapsStayWithinCapacity), arguments: [0, 1, 2, 7, 100])
  func `a map of limited capacity never keeps more values than it may, whatever happens to it`(
    limit: Int
  ) async throws {
    var random = SeededRandom(seed: UInt64(limit))
    var policy = CachePolicy()
    policy.timeToLive = .seconds(60)
    let map = MultiplexerMap<Int, Int>(policy: policy, capacity: .count(limit), clock: clock) {
      key in
      if key % 11 == 10 { throw Broken() }
      return key
    }
    let keys = limit * 3 + 5
    for _ in 0..<500 {
      let key = Int.random(in: 0..<keys, using: &random)
      switch Int.random(in: 0..<12, using: &random) {
      case 0..<6: _ = try? await map.request(key)
      case 6...7: map.store(key, for: key)
      case 8: _ = try? await map.refresh(key).request(key)
      case 9: _ = await map.request([key, (key + 1) % keys, (key + 2) % keys])
      case 10: try await map.clear(key)
      default: clock.advance(by: .seconds(1))
      }
      #expect(count(map, of: keys) <= limit)
    }
    for key in 0..<keys { map.store(key, for: key) }
    #expect(count(map, of: keys) == limit, "All the room is used")
  }

  @Test(
    .guarantee(.rememberedFailuresAreBounded),
    arguments: [CacheCapacity<Int>.count(100), .cost(100, of: { _ in 1 })]
  )
  func `a map remembers no more failures than it has room for values, and the latest of them`(
    capacity: CacheCapacity<Int>
  ) async {
    var policy = CachePolicy()
    policy.failureTimeToLive = .seconds(100_000)
    let map = MultiplexerMap<Int, Int>(policy: policy, capacity: capacity, clock: clock) { _ in
      throw Broken()
    }
    for key in 0..<5_000 {
      clock.advance(by: .milliseconds(1))
      _ = try? await map.request(key)
    }
    let fetches = map.statistics.fetches
    #expect(fetches == 5_000)
    for key in (4_980..<5_000).reversed() { _ = try? await map.request(key) }
    #expect(map.statistics.fetches == fetches, "The latest failures are remembered")
    for key in 0..<4_000 { _ = try? await map.request(key) }
    #expect(map.statistics.fetches == fetches + 4_000, "Older ones are forgotten")
  }

  @Test(
    .guarantee(.rememberedFailuresAreBounded),
    arguments: [Duration.seconds(1), .seconds(Int64.max)]
  )
  func `a map limits the failures that it remembers, also failures of one moment or without end`(
    memory: Duration
  ) async {
    var policy = CachePolicy()
    policy.failureTimeToLive = memory
    let map = MultiplexerMap<Int, Int>(policy: policy, capacity: .count(100), clock: clock) { _ in
      throw Broken()
    }
    for key in 0..<2_000 { _ = try? await map.request(key) }
    for key in 0..<2_000 { _ = try? await map.request(key) }
    #expect(map.statistics.fetches > 3_700, "Hardly any of them was remembered")
    for key in 1_990..<2_000 { _ = try? await map.request(key) }
    #expect(map.statistics.misses - map.statistics.fetches >= 10, "The latest ones are")
  }

  @Test(.guarantee(.rememberedFailuresAreBounded))
  func `a map remembers the failure of a key with a subscriber, however many others fail`()
    async throws
  {
    var policy = CachePolicy()
    policy.failureTimeToLive = .seconds(100_000)
    let map = MultiplexerMap<Int, Int>(policy: policy, capacity: .count(100), clock: clock) { _ in
      throw Broken()
    }
    let subscription = map.subscription(to: 0)
    for key in 0..<2_000 {
      _ = try? await map.request(key)
      clock.advance(by: .milliseconds(1))
    }
    let fetches = map.statistics.fetches
    await #expect(throws: Broken()) { try await map.request(0) }
    #expect(map.statistics.fetches == fetches)
    #expect(await map.subscription(to: 0).first(1).map(\.name) == ["failed Broken"])
    withExtendedLifetime(subscription) {}
  }

  @Test func `a map of limited capacity never keeps more than it may when many threads use it`()
    async
  {
    let map = MultiplexerMap<Int, Int>(capacity: .count(50), clock: clock) { $0 }
    for round in UInt64(0)..<10 {
      await withTaskGroup { group in
        for number in UInt64(0)..<8 {
          group.addTask {
            var random = SeededRandom(seed: round << 8 | number)
            for _ in 0..<300 {
              let key = Int.random(in: 0..<200, using: &random)
              switch Int.random(in: 0..<8, using: &random) {
              case 0: map.store(key, for: key)
              case 1: map.refresh(key)
              case 2: try? await map.clear(key)
              case 3: map.clearMemory()
              case 4: _ = await map.request([key, key + 1, key + 2])
              default: _ = try? await map.request(key)
              }
            }
          }
        }
      }
      // Refreshed keys are fetched without callers. The values are counted one after the other, while none is added or
      // evicted.
      _ = await map.refreshAll().request(0..<203)
      #expect(count(map, of: 203) <= 50)
    }
  }

  @Test
  func `a map of limited capacity that is spread over many locks holds exactly as much as it may`()
  {
    let map = MultiplexerMap<Int, Int>(capacity: .count(131_077), clock: clock) { $0 }
    for key in 0..<150_000 { map.store(key, for: key) }
    #expect(count(map, of: 150_000) == 131_077)
    #expect(map.statistics.evictions == 150_000 - 131_077)
  }

  @Test func `a map that keeps nothing still shares a fetch among its callers`() async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .success(2)], gate: gate)
    let map = MultiplexerMap<Int, Int>(capacity: .count(0), clock: clock) { _ in
      try await origin.fetch()
    }
    let callers = (0..<3).map { _ in begin { try await map.request(7) } }
    await gate.arrivals(1)
    gate.admit(1)
    for caller in callers { #expect(try await caller.value == 1) }
    #expect(map.cachedValue(7) == nil)
    map.store(5, for: 7)
    #expect(map.cachedValue(7) == nil)
    gate.open()
    #expect(try await map.request(7) == 2)
    #expect(map.statistics.counts == CacheStatistics(misses: 2, joins: 2, fetches: 2))
  }

  @Test func `a map with room for one value keeps the newest one`() async throws {
    let map = MultiplexerMap<Int, Int>(capacity: .count(1), clock: clock) { $0 }
    for key in 0..<5 {
      #expect(try await map.request(key) == key)
      #expect(map.cachedValue(key) == key)
      #expect(count(map, of: 5) == 1)
    }
    #expect(map.statistics.counts == CacheStatistics(misses: 5, fetches: 5, evictions: 4))
  }

  @Test(.guarantee(.frequentValuesOutliveOthers))
  func `a map of limited capacity keeps used values when very many are requested once`()
    async throws
  {
    let fetches = Tally()
    let map = MultiplexerMap<Int, Int>(capacity: .count(100), clock: clock) { key in
      if key < 20 { fetches.increment() }
      return key
    }
    for _ in 0..<4 { for key in 0..<20 { _ = try await map.request(key) } }
    for key in 1_000..<2_000 {
      _ = try await map.request(key)
      if key % 50 == 0 { for key in 0..<20 { _ = try await map.request(key) } }
    }
    #expect(fetches.value == 20)
  }

  @Test func `a map of limited capacity releases evicted values under no lock`() async throws {
    let calls = RecordedChannel<@Sendable () -> Void>()
    let tally = Tally()
    let map = MultiplexerMap<Int, ValueThatCalls>(capacity: .count(1), clock: clock) { _ in
      ValueThatCalls {
        tally.increment()
        for call in calls.recorder.elements { call() }
      }
    }
    calls.send { [weak map] in
      _ = map?.cachedValue(1)
      map?.refresh(1)
    }
    _ = await calls.recorder.first(1)
    for key in 0..<10 { _ = try await map.request(key) }
    for key in 0..<10 {
      map.store(
        ValueThatCalls {
          tally.increment()
          for call in calls.recorder.elements { call() }
        },
        for: key
      )
    }
    map.clearMemory()
    // A task that is about to end can still hold fetched values.
    #expect(tally.value >= 10)
  }

  @Test(.startsProcess) func `the capacity of a map must not be negative`() async {
    await #expect(processExitsWith: .failure) {
      _ = MultiplexerMap<Int, Int>(capacity: .count(-1)) { $0 }
    }
    await #expect(processExitsWith: .failure) {
      _ = MultiplexerMap<Int, Int>(capacity: .cost(-1) { _ in 1 }) { $0 }
    }
    await #expect(processExitsWith: .failure) {
      _ = MultiplexerMap<Int, Int>.bulk(capacity: .count(-1)) { _ in [:] }
    }
  }

  // MARK: - Fetches in flight

  @Test
  func `a map lets a fetch continue for its callers, though the old value was evicted`()
    async throws
  {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .success(2)], gate: gate)
    gate.admit(1)
    let map = MultiplexerMap<Int, Int>(capacity: .count(1), clock: clock) { key in
      key == 0 ? try await origin.fetch() : key
    }
    #expect(try await map.request(0) == 1)
    let refreshed = map.refresh(0)
    let early = begin { try await refreshed.request(0) }
    await gate.arrivals(2)
    #expect(map.cachedValue(0) == 1)
    map.store(7, for: 7)
    #expect(map.cachedValue(0) == nil)
    let late = begin { try await map.request(0) }
    gate.open()
    #expect(try await early.value == 2)
    #expect(try await late.value == 2)
    #expect(origin.count == 2)
    #expect(map.cachedValue(0) == 2)
    #expect(count(map, of: 8) == 1)
  }

  @Test func `a map uses the value after a failed fetch though it was evicted meanwhile`()
    async throws
  {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .failure(Offline())], gate: gate)
    gate.admit(1)
    let map = MultiplexerMap<Int, Int>(capacity: .count(1), clock: clock) { key in
      key == 0 ? try await origin.fetch() : key
    }
    _ = try await map.request(0)
    clock.advance(by: .seconds(10))
    let refreshed = map.refresh(0)
    let caller = begin { try await refreshed.response(0) }
    await gate.arrivals(2)
    map.store(7, for: 7)
    gate.open()
    let response = try await caller.value
    #expect(response.value == 1)
    #expect(response.isStale)
    #expect(response.age == .seconds(10))
    #expect(response.source == .memory)
    #expect(response.error is Offline)
    #expect(map.cachedValue(0) == nil, "It does not come back")
    #expect(map.cachedValue(7) == 7)
  }

  @Test func `a map of limited capacity does not use a cleared value`() async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .failure(Offline())], gate: gate)
    gate.admit(1)
    let map = MultiplexerMap<Int, Int>(capacity: .count(1), clock: clock) { key in
      key == 0 ? try await origin.fetch() : key
    }
    _ = try await map.request(0)
    let refreshed = map.refresh(0)
    let caller = begin { try await refreshed.request(0) }
    await gate.arrivals(2)
    try await map.clear(0)
    gate.open()
    await #expect(throws: Offline.self) { try await caller.value }
  }

  @Test func `a map of limited capacity notifies the subscribers of a key whose value was evicted`()
    async throws
  {
    let gate = Gate()
    gate.admit(1)
    let map = MultiplexerMap<Int, Int>(capacity: .count(1), clock: clock) { key in
      try await gate.wait()
      return key
    }
    let states = Recorder(map.subscribe(to: 0, bufferingPolicy: .unbounded))
    _ = try await map.request(0)
    map.store(7, for: 7)
    #expect(await states.first(4).map(\.name) == ["unknown", "loading", "loaded 0", "unknown"])
    map.store(1, for: 0)
    let refreshed = map.refresh(0)
    let caller = begin { try await refreshed.request(0) }
    await gate.arrivals(2)
    map.store(7, for: 7)
    gate.open()
    _ = try await caller.value
    #expect(
      await states.first(8).dropFirst(4).map(\.name)
        == ["loaded 1", "loading 1", "loading", "loaded 0"]
    )
  }

  @Test
  func `a map of limited capacity fetches evicted values again, and counts and reports evictions`()
    async throws
  {
    let map = MultiplexerMap<Int, Int>(capacity: .count(2), clock: clock) { $0 }
    let events = Recorder(map.events())
    for key in [1, 2, 3, 1] { _ = try await map.request(key) }
    #expect(map.statistics.counts == CacheStatistics(misses: 4, fetches: 4, evictions: 2))
    let told = await events.first(6).map(\.description)
    #expect(
      told == [
        "fetched 1", "fetched 2", "fetched 3", "1 was evicted", "fetched 1",
        "2 was evicted",
      ]
    )
  }

  @Test func `a map of limited capacity keeps to the time to live, too`() async throws {
    let fetches = Tally()
    var policy = CachePolicy()
    policy.timeToLive = .seconds(10)
    let map = MultiplexerMap<Int, Int>(policy: policy, capacity: .count(2), clock: clock) { _ in
      fetches.increment()
    }
    #expect(try await map.request(1) == 1)
    clock.advance(by: .seconds(9))
    #expect(try await map.request(1) == 1)
    clock.advance(by: .seconds(1))
    #expect(try await map.request(1) == 2)
    #expect(map.statistics.evictions == 0)
  }

  @Test func `a map of limited capacity has all its room again when it was cleared`() async throws {
    let map = MultiplexerMap<Int, Int>(capacity: .count(10), clock: clock) { $0 }
    for round in 1...3 {
      for key in 0..<10 { _ = try await map.request(key * round) }
      switch round {
      case 1: try await map.clear()
      case 2: map.clearMemory()
      default: for key in 0..<10 { try await map.clear(key * round) }
      }
      #expect(count(map, of: 40) == 0)
    }
    for key in 0..<10 { map.store(key, for: key) }
    #expect(count(map, of: 10) == 10)
    #expect(map.statistics.evictions == 0)
  }
}

/// A value that runs a closure when it is released.
private final class ValueThatCalls: Sendable {
  private let onRelease: @Sendable () -> Void

  init(_ onRelease: @escaping @Sendable () -> Void) {
    self.onRelease = onRelease
  }

  deinit { onRelease() }
}
