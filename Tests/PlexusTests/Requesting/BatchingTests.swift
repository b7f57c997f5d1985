import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A window` {
  let clock = ManualClock()
  let origin = BulkOrigin(isOpen: true)

  private func map(
    _ policy: CachePolicy = CachePolicy(timeToLive: .seconds(60)),
    maximumBatchSize: Int? = nil
  ) -> MultiplexerMap<Int, Int> {
    MultiplexerMap<Int, Int>.bulk(
      policy: policy,
      clock: clock,
      window: .seconds(1),
      maximumBatchSize: maximumBatchSize
    ) { [origin] in try await origin.fetch($0) }
  }

  // MARK: - Sharing a fetch

  @Test(.guarantee(.batchingWindowsShareAFetch))
  func `a batch window lets single requests share a fetch, from the first key on`() async throws {
    let map = map()
    let first = begin { try await map.request(1) }
    await clock.sleepers(1)
    clock.advance(by: .milliseconds(900))
    let second = begin { try await map.request(2) }
    let again = begin { try await map.request(1) }
    #expect(origin.calls.isEmpty)
    clock.advance(by: .milliseconds(100))
    #expect(try await first.value == 101)
    #expect(try await second.value == 102)
    #expect(try await again.value == 101)
    #expect(origin.calls == [[1, 2]])
    #expect(map.statistics.counts == CacheStatistics(misses: 2, joins: 1, fetches: 1))
  }

  @Test
  func `a batch window is joined by requests of several keys, by prefetching and by renewals`()
    async throws
  {
    let map = map()
    map.store(7, for: 9)
    clock.advance(by: .seconds(60))
    let first = begin { try await map.request(1) }
    await clock.sleepers(1)
    let several = begin { await map.request([2, 3, 9]) }
    map.prefetch([4])
    clock.advance(by: .seconds(1))
    #expect(try await first.value == 101)
    #expect(outcomes(try await several.value) == [2: "102", 3: "103", 9: "109"])
    #expect(origin.calls == [[1, 2, 3, 4, 9]])
  }

  @Test func `a batch window does not delay fresh keys`() async throws {
    let map = map(maximumBatchSize: 2)
    map.store(7, for: 1)
    #expect(try await map.request(1) == 7)
    let caller = begin { try await map.request(2) }
    await clock.sleepers(1)
    #expect(try await map.request(1) == 7)
    clock.advance(by: .seconds(1))
    #expect(try await caller.value == 102)
    #expect(origin.calls == [[2]])
  }

  @Test func `a batch window opens again with the next key`() async throws {
    let map = map()
    let first = begin { try await map.request(1) }
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    #expect(try await first.value == 101)
    let second = begin { try await map.request(2) }
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    #expect(try await second.value == 202)
  }

  // MARK: - The largest batch

  @Test(.guarantee(.batchingWindowsShareAFetch))
  func `a batch window ends at once when the batch is full, in the order of the requests`()
    async throws
  {
    let order = Guarded<[[Int]]>([])
    let map = MultiplexerMap<Int, Int>.bulk(
      clock: clock,
      window: .seconds(1),
      maximumBatchSize: 3
    ) { keys in
      order.withLock { $0.append(keys) }
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    let callers = [5, 3, 3, 5, 4].map { key in begin { try await map.request(key) } }
    for caller in callers { _ = try await caller.value }
    #expect(order.withLock { $0 } == [[5, 3, 4]])
    #expect(clock.sleeperCount == 0)
  }

  @Test func `a batch window divides many keys among full batches and one that waits`() async throws
  {
    let map = map(maximumBatchSize: 2)
    let caller = begin { await map.request([1, 2, 3, 4, 5]) }
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    #expect(try await caller.value.count == 5)
    #expect(origin.calls.map(\.count).sorted() == [1, 2, 2])
  }

  @Test func `a batch window of no length still divides many keys`() async {
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock, maximumBatchSize: 2) { [origin] in
      try await origin.fetch($0)
    }
    _ = await map.request([1, 2, 3, 4, 5])
    #expect(origin.calls.map(\.count).sorted() == [1, 2, 2])
  }

  @Test func `a batch window for batches of one key holds nothing up`() async throws {
    let map = map(maximumBatchSize: 1)
    #expect(try await map.request(1) == 101)
    #expect(try await map.request(2) == 202)
  }

  // MARK: - Leaving, clearing, refreshing, storing before departure

  @Test(
    .guarantee(.batchingWindowsShareAFetch),
    arguments: [(CachePolicy.UnobservedFetch.cancel, [[2]]), (.finishAndStore, [[1, 2]])]
  )
  func `a batch window drops a key whose callers have all left, unless its fetch is to finish`(
    expected: (policy: CachePolicy.UnobservedFetch, calls: [[Int]])
  ) async throws {
    let map = map(CachePolicy(whenUnobserved: expected.policy))
    let doomed = begin { try await map.request(1) }
    let caller = begin { try await map.request(2) }
    await clock.sleepers(1)
    doomed.cancel()
    await #expect(throws: CancellationError.self) { try await doomed.value }
    clock.advance(by: .seconds(1))
    #expect(try await caller.value == 102)
    #expect(origin.calls == expected.calls)
  }

  @Test(.guarantee(.droppedKeysDoNotFillABatch))
  func `a batch window is not filled by keys that have been left or stored`() async throws {
    let map = map(CachePolicy(whenUnobserved: .cancel), maximumBatchSize: 3)
    let doomed = begin { try await map.request(1) }
    await clock.sleepers(1)
    doomed.cancel()
    await #expect(throws: CancellationError.self) { try await doomed.value }
    let stored = begin { try await map.request(2) }
    map.store(7, for: 2)
    #expect(try await stored.value == 7)
    let callers = [3, 4].map { key in begin { try await map.request(key) } }
    #expect(origin.calls.isEmpty)
    let last = begin { try await map.request(5) }
    // The batch has departed: the end of the window changes nothing.
    clock.advance(by: .seconds(1))
    #expect(try await last.value == 105)
    for caller in callers { _ = try await caller.value }
    #expect(origin.calls == [[3, 4, 5]])
    #expect(clock.sleeperCount == 0)
  }

  @Test func `a batch window of which all callers have left fetches nothing`() async throws {
    let map = map(CachePolicy(whenUnobserved: .cancel), maximumBatchSize: 2)
    for key in [1, 2] {
      let doomed = begin { try await map.request(key) }
      if key == 1 { await clock.sleepers(1) }
      doomed.cancel()
      await #expect(throws: CancellationError.self) { try await doomed.value }
    }
    #expect(outcomes(await map.request([3, 4])) == [3: "103", 4: "104"])
    #expect(origin.calls == [[3, 4]])
  }

  @Test(.guarantee(.batchingWindowsShareAFetch))
  func `a batch window serves a refresh, since the fetch begins when the batch departs`()
    async throws
  {
    let map = map()
    let first = begin { try await map.request(1) }
    await clock.sleepers(1)
    let refreshed = map.refresh(1)
    let second = begin { try await refreshed.request(1) }
    clock.advance(by: .seconds(1))
    #expect(try await first.value == 101)
    #expect(try await second.value == 101)
    #expect(origin.calls == [[1]])
  }

  @Test func `a batch window after its end does not serve a refresh`() async throws {
    origin.gate.close()
    let map = map()
    let first = begin { try await map.request(1) }
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    await origin.gate.arrivals(1)
    let refreshed = map.refresh(1)
    let second = begin { try await refreshed.request(1) }
    origin.gate.open()
    #expect(try await first.value == 101)
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    #expect(try await second.value == 201)
  }

  @Test func `a batch window fetches a key once that was cleared and requested again`() async throws
  {
    let map = map()
    let early = begin { try await map.request(1) }
    await clock.sleepers(1)
    try await map.clear(1)
    let late = begin { try await map.request(1) }
    clock.advance(by: .seconds(1))
    #expect(try await early.value == 101)
    #expect(try await late.value == 101)
    #expect(origin.calls == [[1]])
    #expect(map.cachedValue(1) == 101)
  }

  @Test func `a batch window does not fetch a key that was stored meanwhile`() async throws {
    let map = map()
    let stored = begin { try await map.request(1) }
    let caller = begin { try await map.request(2) }
    await clock.sleepers(1)
    map.store(7, for: 1)
    #expect(try await stored.value == 7)
    clock.advance(by: .seconds(1))
    #expect(try await caller.value == 102)
    #expect(origin.calls == [[2]])
    #expect(map.cachedValue(1) == 7)
  }

  // MARK: - Failing

  @Test(.guarantee(.batchingWindowsShareAFetch))
  func `a batch that fails gives every key the error`() async throws {
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock, window: .seconds(1), maximumBatchSize: 3)
    {
      _ -> [Int: Int] in throw Broken()
    }
    let callers = [1, 2, 3].map { key in begin { try await map.request(key) } }
    for caller in callers { await #expect(throws: Broken.self) { try await caller.value } }
    #expect(map.statistics.counts == CacheStatistics(misses: 3, fetches: 1, failures: 1))
  }

  @Test(.guarantee(.batchFetchesReturnResultsPerKey))
  func `a batch window retries a batch as a whole, and not the failure of a key`() async throws {
    let calls = Guarded<[[Int]]>([])
    let policy = CachePolicy(
      retry: .exponential(attempts: 2, base: .zero, cap: .zero, jitter: 0)
    )
    let map = MultiplexerMap<Int, Int>.bulk(
      policy: policy,
      clock: clock,
      window: .seconds(1),
      maximumBatchSize: 2
    ) { keys -> [Int: Result<FetchResult<Int>, any Error>] in
      let number = calls.withLock { calls in
        calls.append(keys)
        return calls.count
      }
      if number == 1 { throw Broken() }
      return [1: .success(.value(11)), 2: .failure(Offline())]
    }
    let results = await map.request([1, 2])
    #expect(outcomes(results) == [1: "11", 2: "Offline"])
    #expect(calls.withLock { $0 } == [[1, 2], [1, 2]])
  }

  @Test(.guarantee(.batchFetchesReturnResultsPerKey), arguments: [Duration.zero, .seconds(1)])
  func `a batch with a result for each key gives it the value, the confirmation or the error`(
    window: Duration
  ) async throws {
    let round = Tally()
    let map = MultiplexerMap<Int, Int>.bulk(
      policy: CachePolicy(timeToLive: .seconds(60)),
      clock: clock,
      window: window,
      maximumBatchSize: 4
    ) { keys -> [Int: Result<FetchResult<Int>, any Error>] in
      let isFirst = round.increment() == 1
      var results: [Int: Result<FetchResult<Int>, any Error>] = [:]
      for key in keys {
        switch key {
        case 1:
          results[key] = .success(isFirst ? .value(11, timeToLive: .seconds(5)) : .notModified())
        case 2: results[key] = .failure(Broken())
        case 3: results[key] = .success(.transient(33))
        default: break
        }
      }
      return results
    }
    #expect(
      outcomes(await map.request([1, 2, 3, 4]))
        == [1: "11", 2: "Broken", 3: "33", 4: "MultiplexerError"]
    )
    #expect(map.keys == [1])
    clock.advance(by: .seconds(5))
    #expect(
      outcomes(await map.request([1, 2, 3, 4]))
        == [1: "11", 2: "Broken", 3: "33", 4: "MultiplexerError"]
    )
    #expect(round.value == 2)
  }

  @Test func `a batch with a result for each key answers a single request, too`() async throws {
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock) {
      keys -> [Int: Result<FetchResult<Int>, any Error>] in
      [1: .success(.value(11)), 2: .failure(Broken())]
    }
    #expect(try await map.request(1) == 11)
    await #expect(throws: Broken.self) { try await map.request(2) }
    await #expect(throws: MultiplexerError.missingKey("3")) { try await map.request(3) }
  }

  // MARK: - Context

  @TaskLocal private static var trace = "none"

  @Test(arguments: [nil, 2])
  func `a batch window gives the fetch the task-local values of the caller of its first key`(
    maximumBatchSize: Int?
  ) async throws {
    let map = MultiplexerMap<Int, String>.bulk(
      policy: CachePolicy(inheritsTaskLocals: true),
      clock: clock,
      window: .seconds(1),
      maximumBatchSize: maximumBatchSize
    ) { keys in Dictionary(uniqueKeysWithValues: keys.map { ($0, Self.trace) }) }
    let first = begin { try await Self.$trace.withValue("first") { try await map.request(1) } }
    await clock.sleepers(1)
    let second = begin { try await Self.$trace.withValue("second") { try await map.request(2) } }
    if maximumBatchSize == nil { clock.advance(by: .seconds(1)) }
    #expect(try await first.value == "first")
    #expect(try await second.value == "first")
  }

  @Test func `a batch window reads stored copies together when the batch departs`() async throws {
    let policy = CachePolicy(cacherRead: .beforeFetch)
    let map = MultiplexerMap<Int, Int>.bulk(
      policy: policy,
      cacher: SimpleCacher([1: 11]),
      clock: clock,
      window: .seconds(1),
      maximumBatchSize: 2
    ) { [origin] in try await origin.fetch($0) }
    #expect(outcomes(await map.request([1, 2])) == [1: "11", 2: "102"])
    #expect(origin.calls == [[2]])
  }
}

@Suite(.fewAtOnce) struct `The name of a key` {
  struct Identifier: Hashable, Sendable { var bytes: [UInt8] }

  @Test func `the name of a key lets a key of any type have a stored copy`() async throws {
    let cacher = SimpleCacher()
    let map = MultiplexerMap<Identifier, Int>(
      cacher: cacher,
      keyName: { $0.bytes.map { String($0) }.joined(separator: ".") },
      clock: ManualClock(),
      onKeyFetch: { $0.bytes.count }
    )
    map.store(7, for: Identifier(bytes: [1, 2]))
    try await map.flush()
    #expect(cacher.values == ["1.2": 7])
    try await map.clear(Identifier(bytes: [1, 2]))
    #expect(cacher.values.isEmpty)
  }

  @Test func `the name of a key serves a fetch for several keys, too`() async throws {
    let cacher = SimpleCacher()
    let map = MultiplexerMap<Identifier, Int>.bulk(
      id: "blobs",
      cacher: cacher,
      keyName: { "\($0.bytes.count)" },
      clock: ManualClock(),
      onFetch: { keys in Dictionary(uniqueKeysWithValues: keys.map { ($0, 1) }) }
    )
    _ = await map.request([Identifier(bytes: []), Identifier(bytes: [1])])
    try await map.flush()
    #expect(cacher.values == ["blobs/0": 1, "blobs/1": 1])
  }
}
