import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A change that is not committed yet` {
  let clock = ManualClock()
  let policy = CachePolicy(timeToLive: .seconds(60))

  /// The values of the states of a stream, without repetitions, up to some value.
  private func values(
    of states: AsyncStream<LoadState<[Int]>>,
    upTo last: [Int]
  ) async -> [[Int]] {
    var values: [[Int]] = []
    for await state in states {
      guard let value = state.value else { continue }
      if values.last != value { values.append(value) }
      if value == last, !state.isLoading { break }
    }
    return values
  }

  @Test(.guarantee(.optimisticUpdatesDoNotFlicker), arguments: CacheKind.allCases)
  func `an open change does not flicker while polls end that began before its commit`(
    kind: CacheKind
  ) async throws {
    let origin = Guarded([1])
    let fetching = Gate()
    let cache = kind.make([Int].self, policy: policy, clock: clock) {
      let value = origin.withLock { $0 }
      try await fetching.wait()
      return value
    }
    cache.store([1])
    let states = cache.subscribe()
    let gate = Gate()
    let task = cache.update(adding: 2, gate)
    // One poll ends before the commit, the other one after it.
    let polls = [cache.refresh(), cache.refresh()]
    let first = begin { try await polls[0].request() }
    await fetching.arrivals(1)
    fetching.admit()
    #expect(try await first.value == [1])
    let poll = cache.refresh()
    let second = begin { try await poll.request() }
    await fetching.arrivals(2)
    gate.open()
    try await task.value
    #expect(cache.cachedValue == [1, 2])
    origin.withLock { $0 = [1, 2, 3] }
    fetching.open()
    #expect(try await second.value == [1])
    #expect(await values(of: states, upTo: [1, 2, 3]) == [[1], [1, 2], [1, 2, 3]])
  }

  @Test(.guarantee(.optimisticUpdatesDoNotFlicker), arguments: CacheKind.allCases)
  func `an open change without a value is made on the first one that arrives before its commit`(
    kind: CacheKind
  ) async throws {
    let origin = Guarded([1])
    let fetching = Gate()
    let cache = kind.make([Int].self, policy: policy, clock: clock) {
      let value = origin.withLock { $0 }
      try await fetching.wait()
      return value
    }
    let states = cache.subscribe()
    let caller = begin { try await cache.request() }
    await fetching.arrivals(1)
    let gate = Gate()
    let task = cache.update(adding: 2, gate)
    fetching.open()
    #expect(try await caller.value == [1])
    #expect(cache.cachedValue == [1, 2])
    origin.withLock { $0 = [1, 2, 3] }
    gate.open()
    try await task.value
    #expect(await values(of: states, upTo: [1, 2, 3]) == [[1, 2], [1, 2, 3]])
  }

  @Test(.guarantee(.optimisticUpdatesDoNotFlicker), arguments: CacheKind.allCases)
  func `an open change stays on top of a stored value, and begins one fetch at its commit`(
    kind: CacheKind
  ) async throws {
    let fetching = Gate()
    let cache = kind.make([Int].self, policy: policy, clock: clock) {
      try await fetching.wait()
      return [5, 1]
    }
    cache.store([])
    let states = cache.subscribe()
    let gates = [Gate(), Gate()]
    let first = cache.update(adding: 1, gates[0])
    let second = cache.update(adding: 2, gates[1], fails: true)
    cache.store([5])
    #expect(cache.cachedValue == [5, 1, 2])
    gates[1].open()
    _ = await second.result
    #expect(cache.cachedValue == [5, 1])
    #expect(cache.statistics.fetches == 0)
    gates[0].open()
    try await first.value
    await fetching.arrivals(1)
    #expect(cache.cachedValue == [5, 1])
    fetching.open()
    #expect(try await cache.request() == [5, 1])
    #expect(cache.statistics.fetches == 1)
    cache.store([0])
    #expect(await values(of: states, upTo: [0]) == [[], [1], [1, 2], [5, 1, 2], [5, 1], [0]])
  }

  @Test(.guarantee(.refreshesReturnFetchedValues), arguments: CacheKind.allCases)
  func `an open change does not satisfy a refresh when it is taken back`(
    kind: CacheKind
  ) async throws {
    let cache = kind.makeList(policy: policy, clock: clock)
    let gate = Gate()
    let task = cache.update(adding: 1, gate, fails: true)
    let refreshed = cache.refresh()
    gate.open()
    _ = await task.result
    #expect(cache.cachedValue == [])
    #expect(try await refreshed.request() == [99])
  }

  @Test(.guarantee(.updatesOnOptimisticChangesStay), arguments: [true, false])
  func `a change that fails under an update leaves what is written and shown the same`(
    isFlushedBefore: Bool
  ) async throws {
    let cacher = ControlledCacher<[Int]>()
    let map = MultiplexerMap<Int, [Int]>(policy: policy, cacher: cacher, clock: clock) { [$0] }
    map.store([0], for: 7)
    try await map.flush()
    let gate = Gate()
    let task = begin {
      try await map.update(7, optimistically: { $0.append(1) }) {
        try await gate.wait()
        throw Broken()
      }
    }
    #expect(map.update(7) { $0.append(2) } == [0, 1, 2])
    if isFlushedBefore {
      try await map.flush()
      #expect(cacher.value("7") == [0, 2], "the update is confirmed, the draft is not")
    }
    gate.open()
    await #expect(throws: Broken.self) { try await task.value }
    #expect(map.cachedValue(7) == [0, 2])
    try await map.flush()
    #expect(cacher.value("7") == [0, 2])
  }

  @Test(.guarantee(.updatesOnOptimisticChangesStay))
  func `a change is written with the update above it when memory is left, unless it has failed`()
    async throws
  {
    for fails in [true, false] {
      let cacher = ControlledCacher<[Int]>()
      let map = MultiplexerMap<Int, [Int]>(
        policy: policy,
        capacity: .count(1),
        cacher: cacher,
        clock: clock
      ) { [$0] }
      map.store([0], for: 7)
      let gate = Gate()
      let task = begin {
        try await map.update(7, optimistically: { $0.append(1) }) {
          try await gate.wait()
          if fails { throw Broken() }
        }
      }
      map.update(7) { $0.append(2) }
      gate.open()
      _ = await task.result
      map.store([], for: 8)
      #expect(map.keys == [8])
      try await map.flush()
      #expect(cacher.value("7") == (fails ? [0, 2] : [0, 1, 2]))
    }
  }

  @Test(.guarantee(.optimisticUpdatesDoNotFlicker))
  func `an open change is not part of the value that an origin confirms as unchanged`() async throws
  {
    let map = MultiplexerMap<Int, [Int]>(policy: policy, clock: clock) {
      (_: Int, context: FetchContext<[Int]>) in
      #expect(context.previousValue == [0])
      return .notModified()
    }
    map.store([0], for: 7)
    let gate = Gate()
    let task = begin {
      try await map.update(7, optimistically: { $0.append(1) }) {
        try await gate.wait()
        throw Broken()
      }
    }
    #expect(try await map.refresh(7).request(7) == [0])
    #expect(map.cachedValue(7) == [0, 1])
    gate.open()
    _ = await task.result
    #expect(map.cachedValue(7) == [0])
  }

  @Test(.guarantee(.optimisticUpdatesDoNotFlicker))
  func `an open change stays on top of a value that is read from the cacher`() async throws {
    let cacher = ControlledCacher<[Int]>()
    let map = MultiplexerMap<Int, [Int]>(
      policy: CachePolicy(cacherRead: .beforeFetch),
      cacher: cacher,
      clock: clock
    ) { [$0] }
    map.store([0], for: 7)
    try await map.flush()
    let gate = Gate()
    let task = begin {
      try await map.update(7, optimistically: { $0.append(1) }) {
        try await gate.wait()
        throw Broken()
      }
    }
    map.clearMemory(7)
    #expect(try await map.request(7) == [0])
    #expect(map.cachedValue(7) == [0, 1])
    gate.open()
    _ = await task.result
    #expect(map.cachedValue(7) == [0])
    #expect(map.statistics.fetches == 0)
  }

  /// The values that a cache shows while a fetch fails, its change is committed, and another attempt succeeds.
  private func shown(
    by cache: MultiplexerMap<Int, [Int]>,
    _ origin: RetriedOrigin
  ) async throws -> [[Int]] {
    cache.store([1], for: 7)
    let states = cache.subscribe(to: 7, bufferingPolicy: .unbounded)
    let commit = Gate()
    let task = begin {
      try await cache.update(7, optimistically: { $0.append(2) }) { try await commit.wait() }
    }
    let refreshed = cache.refresh(7)
    let caller = begin { try await refreshed.request(7) }
    await origin.fetching.arrivals(1)
    origin.fetching.open()
    await clock.sleepers(1)
    origin.values.withLock { $0 = [1, 2] }
    commit.open()
    try await task.value
    clock.advance(by: .seconds(1))
    #expect(try await caller.value == [1, 2])
    // The fetch that follows the commit.
    origin.values.withLock { $0 = [1, 2, 3] }
    _ = try await cache.refresh(7).request(7)
    return await values(of: states, upTo: [1, 2, 3])
  }

  @Test(.guarantee(.committedChangesAreNotRepeated), arguments: [true, false])
  func `a change is not repeated on the value of an attempt that begins after its commit`(
    isBulk: Bool
  ) async throws {
    let origin = RetriedOrigin()
    var policy = policy
    policy.retry = .exponential(attempts: 2, base: .seconds(1), cap: .seconds(1), jitter: 0)
    let cache: MultiplexerMap<Int, [Int]> =
      isBulk
      ? .bulk(policy: policy, clock: clock) { (_: [Int]) in [7: try await origin.fetch()] }
      : MultiplexerMap(policy: policy, clock: clock) { _ in try await origin.fetch() }
    #expect(try await shown(by: cache, origin) == [[1], [1, 2], [1, 2, 3]])
  }

  @Test(.guarantee(.committedChangesAreNotRepeated))
  func `a change is not repeated on the value of a fetch that begins once the cacher was read`()
    async throws
  {
    let cacher = ControlledCacher<[Int]>()
    let reading = cacher.hold(.read)
    let map = MultiplexerMap<Int, [Int]>(
      policy: CachePolicy(cacherRead: .beforeFetch),
      cacher: cacher,
      clock: clock
    ) { _ in [1, 2] }
    let states = map.subscription(to: 7, bufferingPolicy: .unbounded)
    let caller = begin { try await map.request(7) }
    await reading.arrivals(1)
    try await map.update(7, optimistically: { $0.append(2) }, commit: {})
    reading.open()
    #expect(try await caller.value == [1, 2])
    for await state in states {
      guard let value = state.value else { continue }
      #expect(value == [1, 2])
      if !state.isLoading { break }
    }
  }
}

/// An origin whose first fetch fails once it was let through, and whose values are read at the start of a fetch.
private final class RetriedOrigin: Sendable {
  let values = Guarded([1])
  let fetching = Gate()
  private let count = Tally()

  func fetch() async throws -> [Int] {
    let number = count.increment()
    let value = values.withLock { $0 }
    try await fetching.wait()
    if number == 1 { throw Broken() }
    return value
  }
}
