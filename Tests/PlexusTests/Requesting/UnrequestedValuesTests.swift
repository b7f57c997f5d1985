import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Values that a fetch of several keys returns for keys that were not requested.
@Suite(.fewAtOnce) struct `An unrequested value` {
  let clock = ManualClock()
  let gate = Gate()

  /// A map whose fetch also returns the values of the keys 8 and 9, once the gate is open.
  private func map(
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Int> = .unbounded,
    cacher: (any Cacher<Int>)? = nil,
    window: Duration = .zero
  ) -> MultiplexerMap<Int, Int> {
    .bulk(
      policy: policy,
      capacity: capacity,
      cacher: cacher,
      tagging: { [CacheTag("digit:\($0)")] },
      clock: clock,
      window: window,
      onFetch: { [gate] keys in
        try await gate.wait()
        let values = Dictionary(uniqueKeysWithValues: keys.map { ($0, $0 * 10) })
        return values.merging([8: 80, 9: 90]) { first, _ in first }
      }
    )
  }

  @Test(.guarantee(.bulkAnswersStoreAll), arguments: [[1], [1, 2]])
  func `an unrequested value is stored as a fresh one, and counts as nothing`(
    keys: [Int]
  ) async throws {
    gate.open()
    let map = map()
    #expect(await map.request(keys).count == keys.count)
    #expect(map.keys.sorted() == keys + [8, 9])
    #expect(map.statistics.counts == CacheStatistics(misses: keys.count, fetches: 1))
    let response = try await map.response(8)
    #expect(response.value == 80)
    #expect(response.source == .memory)
    #expect(map.statistics.counts == CacheStatistics(hits: 1, misses: keys.count, fetches: 1))
    clock.advance(by: CachePolicy().timeToLive)
    #expect(try await map.request(9) == 90)
    #expect(map.statistics.fetches == 2)
  }

  @Test func `an unrequested value is kept by a fetch of a batch, and by one of a single request`()
    async throws
  {
    gate.open()
    let single = map()
    #expect(try await single.request(1) == 10)
    #expect(single.cachedValue(8) == 80)
    let batched = map(window: .seconds(1))
    let caller = begin { try await batched.request(1) }
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    #expect(try await caller.value == 10)
    #expect(batched.cachedValue(8) == 80)
  }

  @Test func `an unrequested value replaces an older one, and ends a remembered failure`()
    async throws
  {
    var policy = CachePolicy()
    policy.failureTimeToLive = .seconds(100)
    let calls = Tally()
    let map = MultiplexerMap<Int, Int>.bulk(policy: policy, clock: clock) { keys in
      if calls.increment() == 1 { throw Broken() }
      return [1: 10, 8: 80, 9: 90]
    }
    map.store(7, for: 8)
    await #expect(throws: Broken.self) { try await map.request(9) }
    _ = await map.request([1])
    #expect(try await map.request(8) == 80)
    #expect(try await map.request(9) == 90)
    #expect(calls.value == 2)
  }

  @Test(.guarantee(.bulkAnswersStoreAll), arguments: MeanwhileChange.allCases)
  func `an unrequested value is dropped if its key has changed since the call began`(
    change: MeanwhileChange
  ) async throws {
    let map = map()
    map.store([8: 1, 9: 1])
    let caller = begin { await map.request([1, 2]) }
    await gate.arrivals(1)
    try await change.make(in: map)
    let old = map.cachedValue(8)
    gate.open()
    _ = try await caller.value
    #expect(map.cachedValue(8) == old)
    if !change.concernsAll { #expect(map.cachedValue(9) == 90) }
    // The next call begins after the change.
    _ = await map.request([3, 4])
    #expect(map.cachedValue(8) == 80)
  }

  @Test(arguments: MeanwhileChange.allCases)
  func `an unrequested value of an unknown key is dropped if the key has changed meanwhile`(
    change: MeanwhileChange
  ) async throws {
    // These change a value that is known.
    guard change != .update, change != .failedCommit else { return }
    let map = map()
    let caller = begin { await map.request([1, 2]) }
    await gate.arrivals(1)
    try await change.make(in: map)
    let old = map.cachedValue(8)
    gate.open()
    _ = try await caller.value
    #expect(map.cachedValue(8) == old)
    if !change.concernsAll { #expect(map.cachedValue(9) == 90) }
  }

  @Test func `an unrequested value is dropped if its key is in flight, or was meanwhile`()
    async throws
  {
    let gates = [Gate(), Gate(), Gate()]
    let calls = Tally()
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock) { keys in
      let number = calls.increment()
      try await gates[number - 1].wait()
      return [8: -1, 9: -1].merging([keys[0]: number]) { $1 }
    }
    let first = begin { try await map.request(1) }
    await gates[0].arrivals(1)
    let second = begin { try await map.request(8) }
    await gates[1].arrivals(1)
    let third = begin { try await map.request(9) }
    await gates[2].arrivals(1)
    gates[1].open()
    #expect(try await second.value == 2)
    gates[0].open()
    #expect(try await first.value == 1)
    #expect(map.cachedValue(8) == 2, "Its fetch has ended meanwhile")
    #expect(map.cachedValue(9) == nil, "It is in flight")
    gates[2].open()
    #expect(try await third.value == 3)
  }

  @Test func `an unrequested value is dropped if a fetch of its key has failed meanwhile`()
    async throws
  {
    let gates = [Gate(), Gate()]
    let calls = Tally()
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock) { keys in
      let number = calls.increment()
      try await gates[number - 1].wait()
      if number == 2 { throw Broken() }
      return [1: 10, 8: 80]
    }
    let first = begin { try await map.request(1) }
    await gates[0].arrivals(1)
    let second = begin { try await map.request(8) }
    await gates[1].arrivals(1)
    gates[1].open()
    await #expect(throws: Broken.self) { try await second.value }
    gates[0].open()
    #expect(try await first.value == 10)
    #expect(map.cachedValue(8) == nil)
  }

  @Test func `an unrequested value of a call that has outlasted the sign-out is dropped`()
    async throws
  {
    let (map, repository) = (map(), MuxRepository())
    map.register(in: repository)
    let caller = begin { try await map.request(1) }
    await gate.arrivals(1)
    try await repository.clearAll()
    gate.open()
    #expect(try await caller.value == 10)
    #expect(map.count == 0)
  }
}

extension `An unrequested value` {
  @Test func `an unrequested value of a call beyond its time limit is dropped`() async throws {
    var policy = CachePolicy()
    policy.fetchTimeout = .seconds(1)
    let (call, released) = (Gate(), Gate())
    let map = MultiplexerMap<Int, Released>.bulk(policy: policy, clock: clock) { _ in
      await waitUnmoved(call)
      return [1: Released(Gate()), 8: Released(released)]
    }
    let caller = begin { await map.request([1, 2]) }
    await call.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    #expect(try await caller.value.values.allSatisfy { (try? $0.get()) == nil })
    call.open()
    try await released.wait()
    #expect(map.count == 0)
  }

  @Test func `an unrequested value of a call whose last caller has left is dropped`() async throws {
    var policy = CachePolicy()
    policy.whenUnobserved = .cancel
    let (call, released) = (Gate(), Gate())
    let map = MultiplexerMap<Int, Released>.bulk(policy: policy, clock: clock) { _ in
      await waitUnmoved(call)
      return [1: Released(Gate()), 8: Released(released)]
    }
    let caller = begin { await map.request([1, 2]) }
    await call.arrivals(1)
    caller.cancel()
    _ = try await caller.value
    call.open()
    try await released.wait()
    #expect(map.count == 0)
  }

  @Test(.guarantee(.bulkAnswersStoreAll))
  func `unrequested values stay within the capacity`() async throws {
    let map = MultiplexerMap<Int, Int>.bulk(capacity: .count(10), clock: clock) { keys in
      Dictionary(uniqueKeysWithValues: (0..<100).map { ($0, $0) })
        .merging(keys.map { ($0, $0) }) { $1 }
    }
    #expect(outcomes(await map.request([1_000, 1_001])) == [1_000: "1000", 1_001: "1001"])
    #expect(map.count <= 10)
    let costly = MultiplexerMap<Int, Int>.bulk(capacity: .cost(10, of: { $0 }), clock: clock) { _ in
      [1: 1, 8: 11]
    }
    _ = await costly.request([1])
    #expect(costly.keys == [1], "The other value costs more than the capacity")
  }

  @Test func `unrequested values are written to the cacher like other values`() async throws {
    gate.open()
    let cacher = SimpleCacher()
    let map = map(cacher: cacher)
    #expect(try await map.request(1) == 10)
    try await map.flush()
    #expect(cacher.values == ["1": 10, "8": 80, "9": 90])
    try await map.clear(8)
    try await map.flush()
    #expect(cacher.values == ["1": 10, "9": 90])
  }

  @Test func `an unrequested value reaches the subscribers of its key`() async throws {
    gate.open()
    let map = map()
    let states = Recorder(map.subscribe(to: 8, bufferingPolicy: .unbounded))
    #expect(try await map.request(1) == 10)
    #expect(await states.first(2).map(\.name) == ["unknown", "loaded 80"])
  }

  @Test func `errors, confirmations and transient values of other keys are ignored`() async throws {
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock) {
      keys -> [Int: Result<FetchResult<Int>, any Error>] in
      [
        4: .failure(Broken()),
        5: .success(.notModified()),
        6: .success(.transient(6)),
        7: .success(.value(7, timeToLive: .seconds(5), validator: "v")),
      ].merging([keys[0]: .success(.value(1))]) { $1 }
    }
    map.store([4: 40, 5: 50, 6: 60])
    #expect(try await map.request(1) == 1)
    #expect(map.keys.sorted() == [1, 4, 5, 6, 7])
    #expect([4, 5, 6, 7].map { map.cachedValue($0) } == [40, 50, 60, 7])
    clock.advance(by: .seconds(5))
    #expect(try await map.request(7) == 1)
    #expect(map.statistics.fetches == 2, "Its own time to live is over")
  }

  @Test func `an unrequested value is reported as a fetched one`() async throws {
    gate.open()
    let map = map()
    let events = Recorder(map.events())
    _ = await map.request([1])
    #expect(
      await Set(events.first(3).map(\.description)) == ["fetched 1", "fetched 8", "fetched 9"]
    )
  }

  @Test func `an unrequested value can be read by code that the map calls meanwhile`() async throws
  {
    let own = OwnCache<MultiplexerMap<Int, Int>>()
    let seen = Guarded<[Int?]>([])
    let map = MultiplexerMap<Int, Int>.bulk(
      capacity: .cost(100) { value in
        seen.withLock { $0.append(nil) }
        for map in own.elements where value == 80 {
          let other = map.cachedValue(8)
          map.store(1, for: 7)
          seen.withLock { $0.append(other) }
        }
        return 1
      },
      clock: clock
    ) { _ in [1: 10, 8: 80] }
    own.send(map)
    _ = await own.first()
    #expect(await map.request([1]).count == 1)
    #expect(map.keys.sorted() == [1, 7, 8])
    #expect(!seen.withLock { $0 }.isEmpty)
  }
}

/// A change of the key 8, or of more.
enum MeanwhileChange: CaseIterable {
  case store, update, clear, clearAll, clearSome, clearWhere, clearTag, refresh, refreshAll,
    refreshWhere, refreshTag, commit, failedCommit

  /// Whether all keys count as changed.
  var concernsAll: Bool {
    switch self {
    case .clearAll, .clearWhere, .refreshAll, .refreshWhere: true
    default: false
    }
  }

  func make(in map: MultiplexerMap<Int, Int>) async throws {
    switch self {
    case .store: map.store(5, for: 8)
    case .update: map.update(8) { $0 += 1 }
    case .clear: try await map.clear(8)
    case .clearAll: try await map.clear()
    case .clearSome: try await map.clear([8])
    case .clearWhere: try await map.clear { $0 == 8 }
    case .clearTag: try await map.clear(tags: ["digit:8"])
    case .refresh: map.refresh(8)
    case .refreshAll: map.refreshAll()
    case .refreshWhere: map.refresh { $0 == 8 }
    case .refreshTag: map.refresh(tags: ["digit:8"])
    case .commit: try await map.update(8, optimistically: { $0 += 1 }, commit: {})
    case .failedCommit:
      _ = try? await map.update(8, optimistically: { $0 += 1 }, commit: { throw Broken() })
    }
  }
}

extension `An unrequested value` {
  @Test(.guarantee(.bulkAnswersStoreAll), arguments: [1_000, 1_024, 1_025, 3_000])
  func `every unrequested value of a large answer is stored`(count: Int) async throws {
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock) { _ in
      Dictionary(uniqueKeysWithValues: (0..<count).map { ($0, $0) })
    }
    #expect(try await map.request(0) == 0)
    #expect(map.count == count)
  }

  @Test func `a large answer does not affect the unrequested values of another call`() async throws
  {
    let gate = Gate()
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock) { keys in
      if keys == [0] { return Dictionary(uniqueKeysWithValues: (0..<2_000).map { ($0, $0) }) }
      try await gate.wait()
      return [-1: -1, -2: -2, 5: -5]
    }
    let slow = begin { try await map.request(-1) }
    await gate.arrivals(1)
    #expect(try await map.request(0) == 0)
    gate.open()
    #expect(try await slow.value == -1)
    #expect(map.cachedValue(-2) == -2)
    #expect(map.cachedValue(5) == 5, "The other answer has brought it since")
  }

  @Test func `a very large answer is stored whole, and replaces no value of another call`()
    async throws
  {
    let gate = Gate()
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock) { keys in
      if keys == [0] { return Dictionary(uniqueKeysWithValues: (0..<66_000).map { ($0, $0) }) }
      try await gate.wait()
      return [-1: -1, 65_999: -5]
    }
    let slow = begin { try await map.request(-1) }
    await gate.arrivals(1)
    #expect(try await map.request(0) == 0)
    #expect(map.count == 66_000)
    gate.open()
    #expect(try await slow.value == -1)
    #expect(map.cachedValue(65_999) == 65_999, "The other answer has brought it since")
  }

  @Test func `an unrequested value is judged by its tags like a requested one`() async throws {
    let cacher = SimpleCacher()
    func rows() -> MultiplexerMap<Int, Int> {
      .bulk(
        id: "rows",
        cacher: cacher,
        valueTagging: { _, row in [CacheTag("tenant:\(row)")] },
        clock: clock,
        onFetch: { [gate] _ in
          try await gate.wait()
          return [1: 5, 8: 5, 9: 6]
        }
      )
    }
    let map = rows()
    let caller = begin { await map.request([1]) }
    await gate.arrivals(1)
    // Of another map with the same cacher.
    try await rows().clear(tags: ["tenant:5"])
    gate.open()
    _ = try await caller.value
    #expect(map.keys.sorted() == [9])
  }
}

/// A value that opens a gate when it is released.
private final class Released: Sendable {
  private let gate: Gate

  init(_ gate: Gate) { self.gate = gate }

  deinit { gate.open() }
}
