import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Stored copies of several keys` {
  let cacher = ControlledCacher<Int>()
  let clock = ManualClock()
  let policy = CachePolicy(cacherRead: .beforeFetch, storageTimeout: .seconds(2))

  private func map(_ fetches: RecordedChannel<[Int]>) -> MultiplexerMap<Int, Int> {
    .bulk(policy: policy, cacher: cacher, clock: clock) { keys in
      fetches.send(keys.sorted())
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, 10 * $0) })
    }
  }

  @Test(.guarantee(.severalCopiesShareOneTimeout))
  func `stored copies that cannot be read soon delay no other key of the fetch`() async throws {
    cacher.entries["2"] = CacheEntry(7, age: .seconds(10))
    let gate = Gate()
    cacher.onCall { if $0.keys == ["1"] { await waitUnmoved(gate) } }
    let fetches = RecordedChannel<[Int]>()
    let map = map(fetches)
    let all = begin { await map.request([1, 2, 3, 4]) }
    await gate.arrivals(1)
    #expect(try await map.request(2) == 7)
    while cacher.count(of: .read) < 4 { await Task.detached {}.value }
    // The time limit of the suspended call, and the time for which the fetch waits for it.
    await clock.sleepers(2)
    clock.advance(by: .seconds(1))
    #expect(try await map.request(3) == 30)
    #expect(try await map.request(4) == 40)
    gate.open()
    #expect(try await all.value.mapValues { try $0.get() } == [1: 10, 2: 7, 3: 30, 4: 40])
    #expect(await fetches.recorder.first(2).flatMap { $0 }.sorted() == [1, 3, 4])
  }

  @Test func `several keys are fetched together if none of their stored copies can be used`()
    async throws
  {
    let fetches = RecordedChannel<[Int]>()
    let map = map(fetches)
    _ = await map.request(Array(0..<40))
    #expect(await fetches.recorder.first(1) == [Array(0..<40)])
    #expect(map.statistics.fetches == 1)
  }

  @Test(.guarantee(.severalCopiesShareOneTimeout))
  func `stored copies of several keys have one storage timeout`() async throws {
    let gate = cacher.hold(.read)
    let fetches = RecordedChannel<[Int]>()
    let map = map(fetches)
    let all = begin { await map.request([1, 2, 3]) }
    await gate.arrivals(3)
    await clock.sleepers(4)
    clock.advance(by: .seconds(2))
    #expect(try await all.value.mapValues { try $0.get() } == [1: 10, 2: 20, 3: 30])
    gate.open()
  }

  @Test(.guarantee(.severalCopiesShareOneTimeout))
  func `stored copies of several keys are read with one call if the cacher can do that`()
    async throws
  {
    let reader = BatchReader()
    let map = MultiplexerMap<Int, Int>.bulk(
      id: "users",
      policy: policy,
      cacher: reader,
      clock: clock
    ) { keys in Dictionary(uniqueKeysWithValues: keys.map { ($0, 10 * $0) }) }
    let values = await map.request([1, 2, 3])
    #expect(try values.mapValues { try $0.get() } == [1: 7, 2: 20, 3: 30])
    #expect(await reader.calls == [["users/1", "users/2", "users/3"]])
  }

  @Test
  func `stored copies of several keys are misses with a cacher that fails to read them together`()
    async throws
  {
    let reader = BatchReader(error: Broken())
    let map = MultiplexerMap<Int, Int>.bulk(policy: policy, cacher: reader, clock: clock) { keys in
      Dictionary(uniqueKeysWithValues: keys.map { ($0, 10 * $0) })
    }
    let values = await map.request([1, 2, 3])
    #expect(try values.mapValues { try $0.get() } == [1: 10, 2: 20, 3: 30])
    #expect(map.statistics.cacherErrors == 3)
  }

  /// A fetch of two keys, whose first part begins before the copy of the second key has been read.
  private struct Split {
    static let tagging: @Sendable (Int) -> [CacheTag] = { _ in ["all"] }

    let map: MultiplexerMap<Int, Int>
    let all: Task<[Int: Result<Int, any Error>], Never>
    private let slow: Gate
    private let gate: Gate
    private let fetches: RecordedChannel<[Int]>

    init(_ cacher: ControlledCacher<Int>, _ clock: ManualClock) async {
      let (slow, gate, fetches) = (Gate(), Gate(), RecordedChannel<[Int]>())
      (self.slow, self.gate, self.fetches) = (slow, gate, fetches)
      cacher.onCall { if $0.operation == .read, $0.keys == ["2"] { await waitUnmoved(slow) } }
      var policy = CachePolicy.readingFirst()
      (policy.storageTimeout, policy.timeToLive) = (.seconds(1_000), .seconds(1_000))
      let map = MultiplexerMap<Int, Int>.bulk(
        policy: policy,
        cacher: cacher,
        tagging: Self.tagging,
        clock: clock
      ) { keys in
        fetches.send(keys.sorted())
        if keys.contains(1) { try await gate.wait() }
        return Dictionary(uniqueKeysWithValues: keys.map { ($0, 10 * $0) })
      }
      self.map = map
      all = Task { await map.request([1, 2]) }
      await slow.arrivals(1)
      while cacher.count(of: .read) < 2 { await Task.detached {}.value }
      // The time limits of the reads that continue, and the time for which the fetch waits for them.
      await clock.sleepers(2)
      clock.advance(by: .seconds(1))
      await gate.arrivals(1)
    }

    /// Lets the second part begin, and then the first one end.
    func end() async throws {
      slow.open()
      #expect(await fetches.recorder.first(2) == [[1], [2]])
      gate.open()
      #expect(try await all.value.mapValues { try $0.get() } == [1: 10, 2: 20])
    }
  }

  @Test(.guarantee(.fetchesOfSeveralKeysHaveTheirOwnStarts))
  func `slow stored copies leave the values of an earlier part of the fetch their age`()
    async throws
  {
    let split = await Split(cacher, clock)
    clock.advance(by: .seconds(90))
    try await split.end()
    #expect(try await split.map.response(1).age == .seconds(90))
    #expect(try await split.map.response(2).age == .zero)
  }

  @Test(.guarantee(.fetchesOfSeveralKeysHaveTheirOwnStarts))
  func `slow stored copies bring back no value that was cleared since their part has begun`()
    async throws
  {
    let split = await Split(cacher, clock)
    let other = MultiplexerMap<Int, Int>(
      cacher: cacher,
      tagging: Split.tagging,
      clock: clock,
      onKeyFetch: { $0 }
    )
    try await other.clear(tags: ["all"])
    try await split.end()
    try await split.map.flush()
    #expect(cacher.entries["1"] == nil)
    #expect(cacher.entries["2"]?.value == 20)
  }

  @Test(
    .guarantee(.fetchesOfSeveralKeysHaveTheirOwnStarts),
    arguments: [CachePolicy.CacherRead.beforeFetch, .afterConnectivityError]
  )
  func `stored copies are read for each fetch of a key, also if a clear has detached one`(
    read: CachePolicy.CacherRead
  ) async throws {
    var policy = policy
    policy.cacherRead = read
    policy.usesCachedValue = { _ in true }
    let fails = read == .afterConnectivityError
    let map = MultiplexerMap<Int, Int>.bulk(
      policy: policy,
      cacher: BatchReader(),
      clock: clock,
      window: .seconds(1)
    ) { keys in
      if fails { throw Broken() }
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, 10 * $0) })
    }
    let first = begin { try await map.request(1) }
    await clock.sleepers(1)
    try await map.clear(1)
    let second = begin { try await map.request(1) }
    await everybodyHasBegun()
    clock.advance(by: .seconds(1))
    for caller in [first, second] {
      let result = await caller.result
      if fails {
        #expect(throws: Broken.self) { try result.get() }
      } else {
        #expect(try result.get() == 10)
      }
    }
  }
}

/// A cacher that has one entry and reads several with one call.
private actor BatchReader: BatchReadingCacher {
  private(set) var calls: [Set<String>] = []
  private let error: (any Error)?

  init(error: (any Error)? = nil) {
    self.error = error
  }

  func entry(forKey key: String) throws -> CacheEntry<Int>? { throw Broken() }

  func entries(forKeys keys: Set<String>) throws -> [String: CacheEntry<Int>] {
    calls.append(keys)
    if let error { throw error }
    return ["users/1": CacheEntry(7, age: .seconds(10))]
  }

  func store(_ entries: [String: CacheEntry<Int>]) {}

  func removeEntries(forKeys keys: Set<String>) {}

  func removeAllEntries() {}
}
