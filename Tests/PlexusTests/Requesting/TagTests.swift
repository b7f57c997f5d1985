import Plexus
import PlexusTesting
import Synchronization
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Tags` {
  let clock = ManualClock()

  /// A map whose keys have the tag of their last digit, and all of them another one.
  private func map(
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Int> = .unbounded,
    cacher: (any Cacher<Int>)? = nil,
    onKeyFetch: @escaping @concurrent @Sendable (Int) async throws -> Int = { $0 * 10 }
  ) -> MultiplexerMap<Int, Int> {
    MultiplexerMap(
      policy: policy,
      capacity: capacity,
      cacher: cacher,
      tagging: { ["all", CacheTag("digit:\($0 % 10)")] },
      clock: clock,
      onKeyFetch: onKeyFetch
    )
  }

  @Test(.guarantee(.tagsClearTogether))
  func `tags clear the values that have one of them, and no others`() async throws {
    let map = map()
    map.store([1: 1, 2: 2, 11: 11, 12: 12, 3: 3])
    try await map.clear(tags: ["digit:1", "digit:3", "digit:9"])
    #expect(map.keys.sorted() == [2, 12])
    try await map.clear(tags: ["all"])
    #expect(map.count == 0)
    try await map.clear(tags: [])
  }

  @Test(.guarantee(.tagsClearTogether)) func `tags cut fetches off, whose callers get the result`()
    async throws
  {
    let gate = Gate()
    let map = map { key in
      try await gate.wait()
      return key
    }
    let caller = begin { try await map.request(1) }
    await gate.arrivals(1)
    try await map.clear(tags: ["digit:1"])
    gate.open()
    #expect(try await caller.value == 1)
    #expect(map.cachedValue(1) == nil)
  }

  @Test func `tags refresh the values that have one of them`() async throws {
    let map = map()
    map.store([1: 1, 2: 2, 11: 11])
    map.refresh(tags: ["digit:1"])
    #expect(try await map.request(1) == 10)
    #expect(try await map.request(11) == 110)
    #expect(try await map.request(2) == 2)
  }

  @Test func `a clear by tags publishes unknown, and skips what subscribers have not read`()
    async throws
  {
    let map = map()
    map.store(1, for: 1)
    let stream = map.subscribe(to: 1, bufferingPolicy: .unbounded)
    map.store(2, for: 1)
    map.clearMemory(1)
    // The key has no value, but the subscriber has not read that.
    try await map.clear(tags: ["digit:1"])
    let states = Recorder(stream)
    map.store(3, for: 1)
    #expect(await states.first(2).map(\.name) == ["unknown", "loaded 3"])
  }

  @Test func `a clear by tags removes stored copies of values in memory, and those on their way`()
    async throws
  {
    let cacher = SimpleCacher()
    let map = map(cacher: cacher)
    map.store([1: 1, 2: 2, 11: 11])
    try await map.flush()
    map.clearMemory(2)
    map.store(12, for: 12)
    map.clearMemory(12)
    try await map.clear(tags: ["digit:1", "digit:2"])
    #expect(map.count == 0)
    try await map.flush()
    // The copy of 2 is only stored: it is checked when it is read.
    #expect(cacher.values == ["2": 2])
  }

  @Test(.guarantee(.tagsClearTogether))
  func `a clear by tags keeps stored copies from being used, and removes them when they are read`()
    async throws
  {
    let cacher = SimpleCacher()
    let map = map(policy: CachePolicy(cacherRead: .beforeFetch), cacher: cacher)
    map.store([1: 1, 2: 2])
    try await map.flush()
    map.clearMemory()
    try await map.clear(tags: ["digit:1"])
    #expect(try await map.request(1) == 10)
    #expect(try await map.request(2) == 2)
    try await map.flush()
    #expect(cacher.values == ["1": 10, "2": 2])
    map.clearMemory()
    #expect(try await map.request(1) == 10)
  }

  @Test(.guarantee(.tagsClearTogether))
  func `a refresh by tags outdates stored copies, which are used after a failed fetch`()
    async throws
  {
    let map = map(
      policy: CachePolicy(cacherRead: .beforeFetch),
      cacher: SimpleCacher([1: 1, 2: 2, 11: 11])
    ) { key in
      if key == 11 { throw Offline() }
      return key * 10
    }
    map.refresh(tags: ["digit:1"])
    #expect(try await map.request(1) == 10)
    #expect(try await map.request(2) == 2)
    #expect(try await map.request(11) == 11)
  }

  @Test func `many stored copies with tags are read together`() async throws {
    let origin = BulkOrigin(isOpen: true)
    let map = MultiplexerMap<Int, Int>.bulk(
      policy: CachePolicy(cacherRead: .beforeFetch),
      cacher: SimpleCacher([1: 1, 2: 2]),
      tagging: { [CacheTag("digit:\($0)")] },
      clock: clock,
      onFetch: { try await origin.fetch($0) }
    )
    try await map.clear(tags: ["digit:1"])
    #expect(outcomes(await map.request([1, 2])) == [1: "101", 2: "2"])
  }

  @Test func `tags follow their keys through eviction, clearing memory and clearing`() async throws
  {
    let map = map(capacity: .count(4))
    for round in 0..<5 {
      for key in 0..<30 { map.store(key, for: key) }
      map.clearMemory(29)
      if round == 2 { map.clearMemory() }
      if round == 3 { try await map.clear() }
    }
    let digits = Set(map.keys.map { $0 % 10 })
    for digit in digits { try await map.clear(tags: [CacheTag("digit:\(digit)")]) }
    #expect(map.count == 0)
  }

  @Test(.guarantee(.tagsClearTogether))
  func `tags are cleared in all members of a repository before anything is removed`() async throws {
    let repository = MuxRepository()
    let first = map(cacher: SimpleCacher()).register(in: repository)
    let second = map().register(in: repository)
    let untagged = MultiplexerMap<Int, Int> { $0 }.register(in: repository)
    let single = Multiplexer { 1 }.register(in: repository)
    for map in [first, second, untagged] { map.store([1: 1, 2: 2]) }
    single.store(1)
    try await repository.clear(tags: ["digit:1"])
    #expect(first.keys == [2])
    #expect(second.keys == [2])
    #expect(untagged.count == 2)
    #expect(single.cachedValue == 1)
  }

  @Test func `a clear by tags names the members whose copies may still be there`() async throws {
    let repository = MuxRepository()
    let map = MultiplexerMap<Int, Int>(
      id: "orders",
      cacher: SimpleCacher(failure: Broken()),
      tagging: { _ in ["all"] },
      clock: clock,
      onKeyFetch: { $0 }
    ).register(in: repository)
    map.store(1, for: 1)
    let error = await #expect(throws: MuxRepositoryError.self) {
      try await repository.clear(tags: ["all"])
    }
    #expect(error?.failures.map(\.id) == ["orders"])
  }

  @Test(.guarantee(.tagsClearTogether))
  func `a clear by tags takes time in proportion to what is cleared`()
    async throws
  {
    let comparisons = Atomic(0)
    let counter = Counter { comparisons.add(1, ordering: .relaxed) }
    let map = MultiplexerMap<CountingKey, Int>(
      tagging: { key in [CacheTag("\(key.number % 1_000)")] },
      clock: clock,
      onKeyFetch: { _ in 1 }
    )
    for number in 0..<20_000 { map.store(1, for: CountingKey(number: number, counter: counter)) }
    comparisons.store(0, ordering: .relaxed)
    try await map.clear(tags: ["7"])
    #expect(map.count == 19_980)
    #expect(comparisons.load(ordering: .relaxed) < 20 * 20)
  }

  private struct Counter: Sendable {
    let count: @Sendable () -> Void
  }

  private struct CountingKey: Hashable, Sendable {
    let number: Int
    let counter: Counter

    static func == (left: Self, right: Self) -> Bool {
      left.counter.count()
      return left.number == right.number
    }

    func hash(into hasher: inout Hasher) { hasher.combine(number) }
  }
}
