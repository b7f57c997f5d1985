import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Several requests inside one fetch of a cache with a limit.
@Suite(.fewAtOnce) struct `Several requests inside a limited fetch` {
  let origin = LimitedOrigin()
  let clock = ManualClock()

  /// A map in which the fetch of some keys requests others, all of them at once.
  private func makeMap(
    _ maximum: Int = 1,
    waiting: Int? = nil,
    needs: [Int: [Int]]
  ) async -> MultiplexerMap<Int, Int> {
    let own = OwnCache<MultiplexerMap<Int, Int>>()
    let map = MultiplexerMap<Int, Int>(policy: LimitedOrigin.policy(maximum, waiting: waiting)) {
      [origin] key in
      var value = try await origin.fetch(key)
      guard let others = needs[key] else { return value }
      for result in await own.elements[0].request(others).values { value += try result.get() }
      return value
    }
    own.send(map)
    _ = await own.first()
    return map
  }

  @Test(.guarantee(.nestedFetchesShareAPlace))
  func `a limited fetch that requests several keys at once runs one of them at a time`()
    async throws
  {
    let map = await makeMap(needs: [1: [2, 3, 4]])
    let caller = begin { try await map.request(1) }
    for number in 1...3 {
      origin.gate(number).open()
      await origin.begins(number + 1)
      #expect(origin.begun == Array(1...(number + 1)))
      #expect(map.statistics.running == 1)
      #expect(map.statistics.waiting == 3 - number)
    }
    origin.gate(4).open()
    #expect(try await caller.value == 101 + 102 + 103 + 104)
    #expect(map.statistics.running == 0)
  }

  @Test func `several requests inside a limited fetch are not refused, and take free places`()
    async throws
  {
    let map = await makeMap(2, waiting: 0, needs: [1: [2, 3, 4, 5]])
    let caller = begin { try await map.request(1) }
    origin.gate(1).open()
    await origin.begins(3)
    #expect(map.statistics.running == 2)
    #expect(map.statistics.waiting == 2)
    await #expect(throws: MultiplexerError.overloaded) { try await map.request(9) }
    for key in 2...5 { origin.gate(key).open() }
    #expect(try await caller.value == 101 + 102 + 103 + 104 + 105)
    #expect(Set(origin.begun) == [1, 2, 3, 4, 5])
  }

  @Test(.guarantee(.nestedFetchesShareAPlace))
  func `a request for a waiting sibling lets it begin`() async throws {
    let map = await makeMap(needs: [1: [2, 3], 2: [3, 4], 4: [3]])
    for key in 1...4 { origin.gate(key).open() }
    #expect(try await map.request(1) == 101 + (102 + 103 + (104 + 103)) + 103)
    #expect(origin.begun.count == 4)
    #expect(map.statistics.waiting == 0)
  }

  @Test(.guarantee(.nestedFetchesShareAPlace))
  func `siblings go before others that wait, as far as they need the place of their fetch`()
    async throws
  {
    let map = await makeMap(needs: [1: [2, 3]])
    let caller = begin { try await map.request(1) }
    await origin.begins(1)
    let other = begin { try await map.request(9) }
    for key in [1, 2, 3, 9] { origin.gate(key).open() }
    _ = try await (caller.value, other.value)
    #expect(origin.begun == [1, 2, 3, 9])
  }

  @Test func `a sibling whose fetch no longer waits for it needs a place of its own`() async throws
  {
    let own = OwnCache<MultiplexerMap<Int, Int>>()
    let (nested, goesOn) = (RecordedChannel<Task<Int, any Error>>(), Gate())
    let map = MultiplexerMap<Int, Int>(policy: LimitedOrigin.policy(1)) { [origin] key in
      let value = try await origin.fetch(key)
      guard key == 1 else { return value }
      let map = own.elements[0]
      let tasks = (2...4).map { key in
        Task(executorPreference: SpotExecutor.shared) { try await map.request(key) }
      }
      nested.send(tasks[2])
      _ = try await (tasks[0].value, tasks[1].value)
      await waitUnmoved(goesOn)
      return value
    }
    own.send(map)
    _ = await own.first()
    let first = begin { try await map.request(1) }
    origin.gate(1).open()
    let task = await nested.recorder.first(1)[0]
    await origin.begins(2)
    let other = begin { try await map.request(4) }
    origin.gate(2).open()
    await origin.begins(3)
    task.cancel()
    _ = await task.result
    origin.gate(3).open()
    await goesOn.arrivals(1)
    #expect(origin.begun == [1, 2, 3])
    #expect(map.statistics.running == 1)
    #expect(map.statistics.waiting == 1, "The first one does not wait for it")
    origin.gate(4).open()
    goesOn.open()
    #expect(try await first.value == 101)
    #expect(try await other.value == 104)
  }

  @Test(.guarantee(.nestedFetchesShareAPlace))
  func `siblings are recognized through other caches, whichever has a limit`() async throws {
    let own = OwnCache<MultiplexerMap<Int, Int>>()
    let ages = MultiplexerMap<Int, Int>(policy: LimitedOrigin.policy(1)) { key in
      try await own.elements[0].request(10 + key)
    }
    let map = MultiplexerMap<Int, Int>(policy: LimitedOrigin.policy(1)) { [origin] key in
      let value = try await origin.fetch(key)
      guard key == 1 else { return value }
      return await ages.request([2, 3, 4]).count
    }
    own.send(map)
    _ = await own.first()
    for key in [1, 12, 13, 14] { origin.gate(key).open() }
    #expect(try await map.request(1) == 3)
    #expect(origin.begun.first == 1)
    #expect(Set(origin.begun) == [1, 12, 13, 14])
  }

  @Test func `many requests inside a limited fetch do not take longer for each other`()
    async throws
  {
    let own = OwnCache<MultiplexerMap<Int, Int>>()
    let map = MultiplexerMap<Int, Int>(policy: LimitedOrigin.policy(1)) { key in
      key == 0 ? await own.elements[0].request(Array(1...2_000)).count : key
    }
    own.send(map)
    _ = await own.first()
    #expect(try await map.request(0) == 2_000)
    #expect(map.statistics.fetches == 2_001)
    #expect(map.statistics.running + map.statistics.waiting == 0)
  }

  /// The second attempt of the fetch of the keys from 2 on waits for the place of the fetch of 1, which waits for the fetch
  /// of 2 that is queued behind it.
  @Test(arguments: [1, 2])
  func `a fetch in whose place the next attempt of a bulk fetch waits can refresh its keys`(
    keyCount: Int
  ) async throws {
    let (own, begun, isReady) = (OwnCache<MultiplexerMap<Int, Int>>(), Log<[Int]>(), Gate())
    let policy = LimitedOrigin.policy(1) {
      $0.retry = .exponential(attempts: 2, base: .seconds(1), cap: .seconds(1), jitter: 0)
    }
    let map = MultiplexerMap<Int, Int>.bulk(policy: policy, clock: clock) { keys in
      begun.append(keys)
      if begun.entries.count == 1 { throw Broken() }
      if keys == [1] {
        try await isReady.wait()
        return [1: try await own.elements.first?.refresh(2).request(2) ?? 0]
      }
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    own.send(map)
    _ = await own.first()
    map.prefetch(2..<(2 + keyCount))
    await clock.sleepers(1)
    let caller = begin { try await map.request(1) }
    await isReady.arrivals(1)
    clock.advance(by: .seconds(1))
    while map.statistics.waiting != 1 { await Task.detached {}.value }
    isReady.open()
    #expect(try await caller.value == 2)
  }
}
