import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A snapshot of entries` {
  typealias Entry = MultiplexerMap<Int, Int>.EntrySnapshot

  let clock = ManualClock()

  private func makeMap(
    _ policy: CachePolicy = CachePolicy(timeToLive: .seconds(60)),
    capacity: CacheCapacity<Int> = .unbounded,
    fetch: @escaping @concurrent @Sendable (Int) async throws -> Int = { $0 }
  ) -> MultiplexerMap<Int, Int> {
    MultiplexerMap(policy: policy, capacity: capacity, clock: clock, onKeyFetch: fetch)
  }

  private func only(_ map: MultiplexerMap<Int, Int>) -> Entry? {
    let entries = map.entries(limit: 10)
    return entries.count == 1 ? entries[0] : nil
  }

  @Test(arguments: [(0, 60), (59, 1), (60, nil), (100, nil)] as [(Int, Int?)])
  func `a snapshot of entries has the age of a value, and the time until it is stale`(
    age: Int,
    left: Int?
  ) throws {
    let map = makeMap()
    map.store(7, for: 1)
    clock.advance(by: .seconds(age))
    let entry = try #require(only(map))
    #expect(entry.key == 1 && entry.value == 7 && entry.cost == 1 && entry.tags.isEmpty)
    #expect(entry.age == .seconds(age))
    #expect(entry.timeLeft == left.map { .seconds($0) })
    #expect(entry.state == (left == nil ? .stale : .fresh))
    #expect(entry.isFresh == (left != nil))
    #expect(entry.error == nil)
  }

  @Test func `a snapshot of entries has no time left for a value that is never stale`() throws {
    let map = makeMap(CachePolicy(timeToLive: .seconds(Int64.max)))
    map.store(7, for: 1)
    let entry = try #require(only(map))
    #expect(entry.isFresh && entry.timeLeft == nil)
  }

  @Test func `a snapshot of entries has the age of a value since its fetch began`() async throws {
    let gate = Gate()
    let map = makeMap { key in
      try await gate.wait()
      return key
    }
    let caller = begin { try await map.request(1) }
    await gate.arrivals(1)
    #expect(map.entries(limit: 10).isEmpty)
    clock.advance(by: .seconds(5))
    gate.open()
    _ = try await caller.value
    #expect(try #require(only(map)).age == .seconds(5))
  }

  @Test func `a snapshot of entries shows a refreshed value as stale`() throws {
    let map = makeMap()
    map.store(7, for: 1)
    map.refresh(1)
    let entry = try #require(only(map))
    #expect(entry.state == .stale && entry.timeLeft == nil && entry.value == 7)
  }

  @Test func `a snapshot of entries shows an idle value as stale, and is no use of it`()
    async throws
  {
    let map = makeMap(CachePolicy(timeToLive: .seconds(1_000), timeToIdle: .seconds(60)))
    map.store(7, for: 1)
    clock.advance(by: .seconds(59))
    let entry = try #require(only(map))
    #expect(entry.isFresh && entry.timeLeft == .seconds(1))
    clock.advance(by: .seconds(1))
    #expect(try #require(only(map)).state == .stale)
    #expect(map.statistics.counts == CacheStatistics())
  }

  @Test func `a snapshot of entries is no use of them that delays their eviction`() {
    func evicted(afterSnapshots count: Int) -> Set<Int> {
      let map = makeMap(capacity: .count(100))
      for key in 0..<100 { map.store(key, for: key) }
      for _ in 0..<count { _ = map.entries(limit: 50) }
      for key in 100..<160 { map.store(key, for: key) }
      return Set(0..<160).subtracting(map.keys)
    }
    // The hashes of a map differ from those of another one, and with them its parts.
    let read = evicted(afterSnapshots: 5)
    #expect(read.count { $0 < 100 } >= 40)
  }

  @Test func `a snapshot of entries shows a remembered failure until it is forgotten`()
    async throws
  {
    var policy = CachePolicy(timeToLive: .seconds(60))
    policy.failureTimeToLive = .seconds(10)
    let map = makeMap(policy) { _ in throw Broken() }
    _ = try? await map.request(1)
    clock.advance(by: .seconds(4))
    let entry = try #require(only(map))
    #expect(entry.state == .failed && entry.value == nil && entry.error is Broken)
    #expect(entry.age == .zero && entry.timeLeft == .seconds(6) && entry.cost == 0)
    clock.advance(by: .seconds(6))
    #expect(map.entries(limit: 10).isEmpty)
  }

  @Test func `a snapshot of entries shows the value that a remembered failure has left`()
    async throws
  {
    var policy = CachePolicy(timeToLive: .seconds(60))
    policy.failureTimeToLive = .seconds(10)
    let map = makeMap(policy) { _ in throw Broken() }
    map.store(7, for: 1)
    clock.advance(by: .seconds(60))
    _ = try? await map.request(1)
    let entry = try #require(only(map))
    #expect(entry.state == .failed && entry.value == 7 && entry.error is Broken)
    #expect(entry.age == .seconds(60) && entry.timeLeft == .seconds(10))
  }

  @Test func `a snapshot of entries shows a value that is renewed as it would be answered`()
    async throws
  {
    let gate = Gate()
    var policy = CachePolicy(timeToLive: .seconds(60))
    policy.staleWhileRevalidate = .seconds(60)
    let map = makeMap(policy) { key in
      try await gate.wait()
      return key
    }
    map.store(7, for: 1)
    clock.advance(by: .seconds(70))
    #expect(try await map.request(1) == 7)
    await gate.arrivals(1)
    #expect(try #require(only(map)).state == .stale)
    gate.open()
  }

  @Test func `a snapshot of entries has their tags and their costs`() throws {
    let map = MultiplexerMap<Int, String>(
      capacity: .cost(1_000) { $0.count },
      tagging: { [CacheTag("key:\($0)")] },
      valueTagging: { _, value in [CacheTag("value:\(value)")] },
      clock: clock,
      onKeyFetch: { "\($0)" }
    )
    map.store("four", for: 1)
    map.store("three", for: 2)
    let entries = map.entries(limit: 10).sorted { $0.key < $1.key }
    #expect(entries.map(\.cost) == [4, 5])
    #expect(
      entries.map { Set($0.tags.map(\.name)) } == [
        ["key:1", "value:four"], ["key:2", "value:three"],
      ]
    )
  }

  @Test(arguments: [0, 1, 40, 100, 200])
  func `a snapshot of entries has at most as many as requested, of the included ones`(
    limit: Int
  ) {
    let map = makeMap()
    for key in 0..<200 { map.store(-key, for: key) }
    let entries = map.entries(limit: limit) { $0.isMultiple(of: 2) }
    #expect(entries.count == min(limit, 100))
    #expect(Set(entries.map(\.key)).count == entries.count)
    #expect(entries.allSatisfy { $0.key.isMultiple(of: 2) && $0.value == -$0.key })
    #expect(map.entries(limit: limit).count == limit)
  }

  @Test(.guarantee(.snapshotsOfEntriesAreOneMoment))
  func `a snapshot of entries is of one moment, even if the condition changes the map`() {
    let map = makeMap(CachePolicy(timeToLive: .seconds(60), timeToIdle: .seconds(30)))
    for key in 0..<1_000 { map.store(key, for: key) }
    let isFirst = Log<Void>()
    let entries = map.entries(limit: 2_000) { _ in
      guard isFirst.count == 0 else { return true }
      isFirst.append(())
      withoutLocks {
        map.clearMemory()
        for key in 0..<2_000 { map.store(-1, for: key) }
      }
      return true
    }
    #expect(Set(entries.map(\.key)) == Set(0..<1_000))
    #expect(entries.allSatisfy { $0.value == $0.key })
    #expect(map.count == 2_000)
  }

  @Test(.guarantee(.snapshotsOfEntriesAreOneMoment))
  func `a snapshot of entries is of one moment while another thread changes several keys`()
    async throws
  {
    let map = makeMap()
    let keys = 0..<16
    for key in keys { map.store(0, for: key) }
    let (hasBegun, isOver) = (Gate(), Gate())
    let writer = Task.detached(executorPreference: TestThreads(1)) {
      var round = 0
      while !isOver.isOpen {
        round += 1
        for key in keys { map.store(round, for: key) }
        if round == 1 { hasBegun.open() }
      }
      return round
    }
    try await hasBegun.wait()
    var isOneMoment = true
    for _ in 0..<2_000 {
      let values = map.entries(limit: 100).sorted { $0.key < $1.key }.compactMap(\.value)
      // Each round changes the keys in order: the former ones are at most one round ahead.
      isOneMoment =
        isOneMoment && values.count == 16 && values == values.sorted(by: >)
        && values[0] - values[15] <= 1
    }
    isOver.open()
    #expect(isOneMoment)
    #expect(await writer.value > 0)
  }

  @Test func `a snapshot of entries keeps no value alive once it is released`() async {
    let census = Census()
    let map = MultiplexerMap<Int, Parcel>(clock: clock) { census.parcel($0) }
    map.store(census.parcel(1), for: 1)
    do {
      let entries = map.entries(limit: 1)
      map.clearMemory()
      #expect(census.living == 1)
      withExtendedLifetime(entries) {}
    }
    await census.falls(to: 0)
    #expect(map.entries(limit: 1).isEmpty)
  }

  @Test(.startsProcess)
  func `a snapshot of fewer than no entries or fetches is a mistake`() async {
    await #expect(processExitsWith: .failure) {
      _ = MultiplexerMap<Int, Int> { $0 }.entries(limit: -1)
    }
    await #expect(processExitsWith: .failure) {
      _ = MultiplexerMap<Int, Int> { $0 }.flights(limit: -1)
    }
  }

  @Test func `a multiplexer has one entry, or none`() async throws {
    var policy = CachePolicy(timeToLive: .seconds(60))
    policy.failureTimeToLive = .seconds(10)
    let origin = ScriptedFetcher<Int>([.failure(Broken()), .success(1)])
    let cache = Multiplexer(policy: policy, clock: clock) { try await origin.fetch() }
    #expect(cache.entry == nil)
    _ = try? await cache.request()
    let failure = try #require(cache.entry)
    #expect(failure.state == .failed && failure.value == nil && failure.error is Broken)
    #expect(failure.timeLeft == .seconds(10) && failure.age == .zero && !failure.isFresh)
    clock.advance(by: .seconds(10))
    #expect(cache.entry == nil)
    _ = try await cache.request()
    clock.advance(by: .seconds(1))
    let entry = try #require(cache.entry)
    #expect(entry.isFresh && entry.value == 1 && entry.error == nil)
    #expect(entry.age == .seconds(1) && entry.timeLeft == .seconds(59))
  }
}
