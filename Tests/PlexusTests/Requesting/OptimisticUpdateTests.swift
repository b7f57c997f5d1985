import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `An optimistic update` {
  let clock = ManualClock()
  let policy = CachePolicy(timeToLive: .seconds(60))

  @Test(.guarantee(.optimisticUpdatesRollBack), arguments: CacheKind.allCases)
  func `an optimistic update is seen before it suspends, and stays when it is committed`(
    kind: CacheKind
  ) async throws {
    let cache = kind.makeList(policy: policy, clock: clock)
    clock.advance(by: .seconds(10))
    let gate = Gate()
    let task = cache.update(adding: 1, gate)
    #expect(cache.cachedValue == [1])
    #expect(try await cache.response().age == .seconds(10))
    gate.open()
    try await task.value
    #expect(try await cache.request() == [1])
  }

  @Test(arguments: CacheKind.allCases)
  func `an optimistic update returns what the commit returns`(kind: CacheKind) async throws {
    let cache = kind.makeList(policy: policy, clock: clock)
    #expect(try await cache.update(optimistically: { $0 = [1] }, commit: { "saved" }) == "saved")
  }

  @Test(.guarantee(.optimisticUpdatesRollBack), arguments: CacheKind.allCases)
  func `an optimistic update that fails is taken back`(kind: CacheKind) async throws {
    let cache = kind.makeList(policy: policy, clock: clock)
    let states = Recorder(cache.subscribe())
    let gate = Gate()
    let task = cache.update(adding: 1, gate, fails: true)
    gate.open()
    await #expect(throws: Broken.self) { try await task.value }
    #expect(cache.cachedValue == [])
    #expect(await states.first(3).map { $0.value } == [[], [1], []])
  }

  @Test(.guarantee(.optimisticUpdatesRollBack), arguments: CacheKind.allCases)
  func `an optimistic update that fails under a later one is taken out, and the later one stays`(
    kind: CacheKind
  ) async throws {
    let cache = kind.makeList(policy: policy, clock: clock)
    let gates = [Gate(), Gate(), Gate()]
    let first = cache.update(adding: 1, gates[0], fails: true)
    let second = cache.update(adding: 2, gates[1])
    let third = cache.update(adding: 3, gates[2], fails: true)
    #expect(cache.cachedValue == [1, 2, 3])
    gates[1].open()
    try await second.value
    gates[0].open()
    await #expect(throws: Broken.self) { try await first.value }
    #expect(cache.cachedValue == [2, 3])
    gates[2].open()
    await #expect(throws: Broken.self) { try await third.value }
    #expect(cache.cachedValue == [2])
    #expect(try await cache.request() == [2])
  }

  @Test(.guarantee(.optimisticUpdatesRollBack), arguments: CacheKind.allCases)
  func `an update that fails under a change that cannot be made again refreshes the key`(
    kind: CacheKind
  ) async throws {
    let cache = kind.makeList(policy: policy, clock: clock)
    let gate = Gate()
    let task = cache.update(adding: 1, gate, fails: true)
    cache.update { $0.append(2) }
    gate.open()
    await #expect(throws: Broken.self) { try await task.value }
    #expect(cache.cachedValue == [2])
    #expect(try await cache.request() == [99])
  }

  @Test(.guarantee(.optimisticUpdatesRollBack), arguments: CacheKind.allCases)
  func `an optimistic update that fails takes back nothing that was stored since`(
    kind: CacheKind
  ) async throws {
    let cache = kind.makeList(policy: policy, clock: clock)
    let gate = Gate()
    let task = cache.update(adding: 1, gate, fails: true)
    cache.store([5])
    #expect(cache.cachedValue == [5, 1])
    gate.open()
    await #expect(throws: Broken.self) { try await task.value }
    #expect(try await cache.request() == [5])
  }

  @Test(arguments: CacheKind.allCases)
  func `an optimistic update whose commit stores the value leaves it fresh`(
    kind: CacheKind
  ) async throws {
    let cache = kind.makeList(policy: policy, clock: clock)
    try await cache.update(optimistically: { $0.append(1) }, commit: { cache.store([1, 2]) })
    #expect(try await cache.request() == [1, 2])
    #expect(cache.statistics.fetches == 0)
  }

  @Test(arguments: CacheKind.allCases, [true, false])
  func `an optimistic update that ends after a clear restores nothing`(
    kind: CacheKind,
    fails: Bool
  ) async throws {
    let cache = kind.makeList(policy: policy, clock: clock)
    let gate = Gate()
    let task = cache.update(adding: 1, gate, fails: fails)
    try await cache.clear()
    gate.open()
    _ = await task.result
    #expect(cache.cachedValue == nil)
    #expect(try await cache.request() == [99])
  }

  @Test(.guarantee(.optimisticUpdatesStayUntilCommitted), arguments: CacheKind.allCases)
  func `an optimistic update is not replaced by a fetch that began before it`(
    kind: CacheKind
  ) async throws {
    let fetching = Gate()
    let cache = kind.make([Int].self, policy: policy, clock: clock) {
      try await fetching.wait()
      return [99]
    }
    cache.store([])
    clock.advance(by: .seconds(60))
    let caller = begin { try await cache.request() }
    await fetching.arrivals(1)
    let gate = Gate()
    let task = cache.update(adding: 1, gate)
    #expect(try await caller.value == [1])
    fetching.open()
    gate.open()
    try await task.value
    #expect(cache.cachedValue == [1])
  }

  @Test(
    .guarantee(.optimisticUpdatesStayUntilCommitted),
    arguments: CacheKind.allCases,
    [true, false]
  )
  func `an update stays on top of a later fetch, and refreshes the key when it is committed`(
    kind: CacheKind,
    fails: Bool
  ) async throws {
    let calls = Tally()
    let cache = kind.make([Int].self, policy: policy, clock: clock) { [99, calls.increment()] }
    cache.store([])
    let gate = Gate()
    let task = cache.update(adding: 1, gate, fails: fails)
    #expect(try await cache.refresh().request() == [99, 1])
    #expect(cache.cachedValue == [99, 1, 1])
    gate.open()
    _ = await task.result
    #expect(try await cache.request() == (fails ? [99, 1] : [99, 2]))
  }

  @Test(.guarantee(.committedUpdatesAreNotLost), arguments: CacheKind.allCases)
  func `an update that is committed during a fetch that began after it refreshes the key`(
    kind: CacheKind
  ) async throws {
    let fetching = Gate()
    let calls = Tally()
    let cache = kind.make([Int].self, policy: policy, clock: clock) {
      let number = calls.increment()
      try await fetching.wait()
      return [99, number]
    }
    cache.store([])
    let gate = Gate()
    let task = cache.update(adding: 1, gate)
    let refreshed = cache.refresh()
    let caller = begin { try await refreshed.request() }
    await fetching.arrivals(1)
    gate.open()
    try await task.value
    #expect(try await cache.request() == [1])
    fetching.open()
    #expect(try await caller.value == [99, 1])
    for await state in cache.subscribe() where !state.isLoading { break }
    #expect(try await cache.request() == [99, 2])
  }

  @Test(.guarantee(.committedUpdatesAreNotLost), arguments: 0..<40)
  func `an update is never lost among fetches and clears, and leaves no trace if it fails`(
    seed: UInt64
  ) async throws {
    var random = SeededRandom(seed: seed)
    let origin = Guarded<[Int]>([])
    let fetching = Gate()
    let calls = Log<[Int]>()
    let map = MultiplexerMap<Int, [Int]>(policy: policy, clock: clock) { _ in
      // What the origin has when the fetch begins.
      let values = origin.withLock { $0 }
      calls.append(values)
      try await fetching.wait()
      return values
    }
    var open: [(gate: Gate, task: Task<Void, any Error>)] = []
    var callers: [Task<[Int], any Error>] = []
    for number in 0..<40 {
      switch Int.random(in: 0..<9, using: &random) {
      case 0...2:
        let gate = Gate()
        let fails = Int.random(in: 0..<3, using: &random) == 0
        let task = begin {
          try await map.update(7, optimistically: { $0.append(number) }) {
            try await gate.wait()
            if fails { throw Broken() }
            origin.withLock { $0.append(number) }
          }
        }
        open.append((gate, task))
      case 3...4 where !open.isEmpty:
        let ended = open.remove(at: Int.random(in: 0..<open.count, using: &random))
        ended.gate.open()
        _ = await ended.task.result
      case 5:
        let refreshed = map.refresh(7)
        callers.append(begin { try await refreshed.request(7) })
      case 6:
        fetching.admit()
      case 7:
        try await map.clear(7)
      default:
        callers.append(begin { try await map.request(7) })
      }
    }
    for ended in open {
      ended.gate.open()
      _ = await ended.task.result
    }
    fetching.open()
    for caller in callers { _ = try await caller.value }
    // A fetch that the last confirmation has requested can still be in flight.
    for await state in map.subscribe(to: 7) where !state.isLoading { break }
    let expected = origin.withLock { Set($0) }
    #expect(try await Set(map.request(7)) == expected)
  }

  @Test(arguments: CacheKind.allCases)
  func `an optimistic update without a value commits and changes nothing`(
    kind: CacheKind
  ) async throws {
    let calls = Tally()
    let cache = kind.make([Int].self, policy: policy, clock: clock) { [99] }
    try await cache.update(optimistically: { _ in calls.increment() }, commit: {})
    #expect(calls.value == 0)
    #expect(cache.cachedValue == nil)
  }

  @Test(.guarantee(.optimisticUpdatesStayUntilCommitted))
  func `an update is written once it is committed, and until then what was there before`()
    async throws
  {
    let cacher = SimpleCacher()
    let map = MultiplexerMap<Int, Int>(policy: policy, cacher: cacher, clock: clock) { $0 }
    map.store(1, for: 7)
    let gate = Gate()
    let task = begin {
      try await map.update(7, optimistically: { $0 = 2 }) { try await gate.wait() }
    }
    try await map.flush()
    #expect(cacher.values == ["7": 1])
    try await map.flush()
    gate.open()
    try await task.value
    try await map.flush()
    #expect(cacher.values == ["7": 2])
  }

  @Test(.guarantee(.optimisticUpdatesStayUntilCommitted))
  func `an optimistic update is written once it is committed, though one before it fails later`()
    async throws
  {
    let cacher = SimpleCacher()
    let map = MultiplexerMap<Int, Int>(policy: policy, cacher: cacher, clock: clock) { $0 }
    map.store(1, for: 7)
    try await map.flush()
    let gate = Gate()
    let failing = begin {
      try await map.update(7, optimistically: { $0 += 10 }) {
        try await gate.wait()
        throw Broken()
      }
    }
    try await map.update(7, optimistically: { $0 += 100 }, commit: {})
    try await map.flush()
    #expect(cacher.values == ["7": 1])
    gate.open()
    await #expect(throws: Broken.self) { try await failing.value }
    #expect(map.cachedValue(7) == 101)
    try await map.flush()
    #expect(cacher.values == ["7": 101])
  }

  @Test(.guarantee(.optimisticUpdatesStayUntilCommitted))
  func `an optimistic update that fails alone leaves nothing to be written`() async throws {
    let cacher = SimpleCacher()
    let map = MultiplexerMap<Int, Int>(policy: policy, cacher: cacher, clock: clock) { $0 }
    let events = Recorder(map.events())
    map.store(1, for: 7)
    try await map.flush()
    await #expect(throws: Broken.self) {
      try await map.update(7, optimistically: { $0 = 2 }, commit: { throw Broken() })
    }
    try await map.flush()
    map.store(3, for: 8)
    try await map.flush()
    let names = await events.first(6).map(\.description)
    #expect(names.filter { $0.contains("written") }.count == 2)
  }

  @Test(.guarantee(.optimisticUpdatesStayUntilCommitted))
  func `an optimistic update is not written when it leaves memory`() async throws {
    let cacher = SimpleCacher()
    let map = MultiplexerMap<Int, Int>(policy: policy, cacher: cacher, clock: clock) { $0 }
    map.store(1, for: 7)
    let gate = Gate()
    let task = begin {
      try await map.update(7, optimistically: { $0 = 2 }) { try await gate.wait() }
    }
    map.clearMemory(7)
    try await map.flush()
    #expect(cacher.values == ["7": 1])
    gate.open()
    try await task.value
  }

  @Test(.guarantee(.optimisticUpdatesStayUntilCommitted), arguments: [true, false])
  func `an update is written behind once it is committed, and not before or if it fails`(
    fails: Bool
  ) async throws {
    let cacher = SimpleCacher()
    // Without a time limit of the cacher nothing else sleeps.
    let policy = CachePolicy(storageTimeout: .seconds(10_000_000_000), writeBehind: .seconds(3))
    let map = MultiplexerMap<Int, Int>(policy: policy, cacher: cacher, clock: clock) { $0 }
    let events = Recorder(map.events())
    map.store(1, for: 7)
    await clock.sleepers(1)
    clock.advance(by: .seconds(3))
    _ = await events.first(2)
    let gate = Gate()
    let task = begin {
      try await map.update(7, optimistically: { $0 = 2 }) {
        try await gate.wait()
        if fails { throw Broken() }
      }
    }
    #expect(clock.sleeperCount == 0, "nothing is to be written")
    gate.open()
    _ = await task.result
    #expect(map.cachedValue(7) == (fails ? 1 : 2))
    guard !fails else {
      #expect(clock.sleeperCount == 0)
      return
    }
    await clock.sleepers(1)
    clock.advance(by: .seconds(2))
    #expect(cacher.values == ["7": 1])
    clock.advance(by: .seconds(1))
    await cacher.stores(2)
    #expect(cacher.values == ["7": 2])
  }

  @Test(.guarantee(.optimisticUpdatesStayUntilCommitted), arguments: [true, false])
  func `an update of an evicted key is not written, and the key fetched unless it has failed`(
    fails: Bool
  ) async throws {
    let cacher = SimpleCacher()
    let map = MultiplexerMap<Int, Int>(
      policy: CachePolicy(cacherRead: .beforeFetch),
      capacity: .count(1),
      cacher: cacher,
      clock: clock
    ) { $0 * 100 }
    map.store(1, for: 7)
    let gate = Gate()
    let task = begin {
      try await map.update(7, optimistically: { $0 = 2 }) {
        try await gate.wait()
        if fails { throw Broken() }
      }
    }
    #expect(map.cachedValue(7) == 2)
    map.store(8, for: 8)
    #expect(map.keys == [8])
    try await map.flush()
    #expect(cacher.values == ["7": 1, "8": 8], "what was there before the update")
    gate.open()
    _ = await task.result
    #expect(map.cachedValue(7) == nil)
    // The stored copy does not have the change, which the origin has if it was committed.
    #expect(try await map.request(7) == (fails ? 1 : 700))
  }

  @Test(.guarantee(.optimisticUpdatesRollBack), arguments: 0..<60)
  func `an optimistic update among others leaves the values that were committed, in order`(
    seed: UInt64
  ) async throws {
    var random = SeededRandom(seed: seed)
    let cache = CacheKind.map.makeList(policy: policy, clock: clock)
    var open: [(number: Int, gate: Gate, fails: Bool, task: Task<Void, any Error>)] = []
    var shown: [Int] = []
    for number in 0..<40 {
      if Bool.random(using: &random) || open.isEmpty {
        let gate = Gate()
        let fails = Bool.random(using: &random)
        open.append((number, gate, fails, cache.update(adding: number, gate, fails: fails)))
        shown.append(number)
      } else {
        let ended = open.remove(at: Int.random(in: 0..<open.count, using: &random))
        ended.gate.open()
        _ = await ended.task.result
        if ended.fails { shown.removeAll { $0 == ended.number } }
      }
      try #require(cache.cachedValue == shown)
    }
    for ended in open {
      ended.gate.open()
      _ = await ended.task.result
      if ended.fails { shown.removeAll { $0 == ended.number } }
    }
    #expect(cache.cachedValue == shown)
    #expect(cache.statistics.fetches == 0)
  }
}
