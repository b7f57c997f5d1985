import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Requests inside fetches of caches with a limit.
@Suite(.fewAtOnce) struct `A request inside a limited fetch` {
  let origin = LimitedOrigin()

  /// A map with a limit of one, in which the fetch of some keys requests others.
  private func maps(
    _ maximum: Int = 1,
    waiting: Int? = nil,
    needs: [Int: [Int]]
  ) -> (map: MultiplexerMap<Int, Int>, own: OwnCache<MultiplexerMap<Int, Int>>) {
    let own = OwnCache<MultiplexerMap<Int, Int>>()
    let map = MultiplexerMap<Int, Int>(policy: LimitedOrigin.policy(maximum, waiting: waiting)) {
      [origin] key in
      var value = try await origin.fetch(key)
      for other in needs[key] ?? [] { value += try await own.elements[0].request(other) }
      return value
    }
    own.send(map)
    return (map, own)
  }

  @Test(.guarantee(.nestedFetchesShareAPlace))
  func `a request inside a limited fetch uses the place of that fetch`() async throws {
    let (map, own) = maps(needs: [1: [2, 3], 3: [4]])
    _ = await own.first()
    for key in 1...5 { origin.gate(key).open() }
    #expect(try await map.request(1) == 101 + 102 + 103 + 104)
    #expect(origin.begun == [1, 2, 3, 4])
    #expect(map.statistics.running == 0)
    #expect(map.statistics.waiting == 0)
    #expect(try await map.request(5) == 105)
  }

  @Test func `a request inside a limited fetch takes no other place, and is not refused`()
    async throws
  {
    let (map, own) = maps(2, waiting: 0, needs: [1: [2], 2: [3]])
    _ = await own.first()
    let first = begin { try await map.request(1) }
    origin.gate(1).open()
    await origin.begins(2)
    #expect(map.statistics.running == 1)
    let other = begin { try await map.request(9) }
    await origin.begins(3)
    #expect(map.statistics.running == 2)
    origin.gate(2).open()
    await origin.begins(4)
    for key in [3, 9] { origin.gate(key).open() }
    #expect(try await first.value == 101 + 102 + 103)
    #expect(try await other.value == 109)
  }

  @Test(.guarantee(.nestedFetchesShareAPlace))
  func `a request inside a limited fetch that joins a waiting one lets it begin`() async throws {
    let (map, own) = maps(needs: [1: [2]])
    _ = await own.first()
    let first = begin { try await map.request(1) }
    await origin.begins(1)
    let before = begin { try await map.request(3) }
    let second = begin { try await map.request(2) }
    #expect(map.statistics.waiting == 2)
    origin.gate(1).open()
    await origin.begins(2)
    #expect(origin.begun == [1, 2])
    for key in 1...3 { origin.gate(key).open() }
    #expect(try await first.value == 203)
    #expect(try await second.value == 102)
    #expect(try await before.value == 103)
  }

  @Test(.guarantee(.nestedFetchesShareAPlace))
  func `a request inside a limited fetch is recognized through another cache`() async throws {
    let own = OwnCache<MultiplexerMap<Int, Int>>()
    let middle = Multiplexer<Int> { try await own.elements[0].request(2) }
    let map = MultiplexerMap<Int, Int>(policy: LimitedOrigin.policy(1)) { [origin] key in
      let value = try await origin.fetch(key)
      return key == 1 ? try await value + middle.request() : value
    }
    own.send(map)
    _ = await own.first()
    for key in 1...2 { origin.gate(key).open() }
    #expect(try await map.request(1) == 203)
  }

  @Test func `a request inside a limited fetch is recognized when the other cache was first`()
    async throws
  {
    let own = OwnCache<MultiplexerMap<Int, Int>>()
    let gate = Gate()
    let middle = Multiplexer<Int> {
      try await gate.wait()
      return try await own.elements[0].request(2)
    }
    let map = MultiplexerMap<Int, Int>(policy: LimitedOrigin.policy(1)) { [origin] key in
      let value = try await origin.fetch(key)
      return key == 1 ? try await value + middle.request() : value
    }
    own.send(map)
    _ = await own.first()
    let first = begin { try await map.request(1) }
    await origin.begins(1)
    let other = begin { try await middle.request() }
    await gate.arrivals(1)
    gate.open()
    // It waits for the place of the first one, which does not wait for it yet.
    origin.gate(2).open()
    origin.gate(1).open()
    #expect(try await first.value == 203)
    #expect(try await other.value == 102)
  }

  @Test(.guarantee(.nestedFetchesShareAPlace))
  func `two limited caches whose fetches request from each other do not block each other`()
    async throws
  {
    let names = OwnCache<MultiplexerMap<Int, Int>>()
    let policy = LimitedOrigin.policy(1)
    let ages = MultiplexerMap<Int, Int>(policy: policy) { [origin] key in
      let value = try await origin.fetch(10 + key)
      return key == 2 ? try await value + names.elements[0].request(3) : value
    }
    let map = MultiplexerMap<Int, Int>(policy: policy) { [origin] key in
      let value = try await origin.fetch(key)
      return key == 1 ? try await value + ages.request(4) : value
    }
    names.send(map)
    _ = await names.first()
    let first = begin { try await map.request(1) }
    let second = begin { try await ages.request(2) }
    await origin.begins(2)
    for key in [3, 14, 1, 12] { origin.gate(key).open() }
    #expect(try await first.value == 101 + 114)
    #expect(try await second.value == 112 + 103)
    #expect(map.statistics.running + ages.statistics.running == 0)
  }

  @Test func `a request of several keys inside a limited fetch of several uses its place`()
    async throws
  {
    let own = OwnCache<MultiplexerMap<Int, Int>>()
    let calls = BulkOrigin(isOpen: true)
    let map = MultiplexerMap<Int, Int>.bulk(policy: LimitedOrigin.policy(1)) { keys in
      if keys.contains(1) { _ = await own.elements[0].request([3, 4]) }
      return try await calls.fetch(keys)
    }
    own.send(map)
    _ = await own.first()
    #expect(outcomes(await map.request([1, 2])) == [1: "201", 2: "202"])
    #expect(calls.calls == [[3, 4], [1, 2]])
  }

  @Test func `a request of its own key inside a limited fetch is still an error`() async throws {
    let (map, own) = maps(needs: [1: [2], 2: [1]])
    _ = await own.first()
    for key in 1...2 { origin.gate(key).open() }
    await #expect(throws: MultiplexerError.self) { try await map.request(1) }
    #expect(map.statistics.running == 0)
  }

  @Test func `a fetch continues at the place of another one whose callers have left`() async throws
  {
    let own = OwnCache<MultiplexerMap<Int, Int>>()
    var policy = LimitedOrigin.policy(1)
    policy.whenUnobserved = .cancel
    let map = MultiplexerMap<Int, Int>(policy: policy) { [origin] key in
      key == 1 ? try await own.elements[0].request(2) : try await origin.fetch(key)
    }
    own.send(map)
    _ = await own.first()
    let first = begin { try await map.request(1) }
    await origin.begins(1)
    let second = begin { try await map.request(2) }
    let third = begin { try await map.request(3) }
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    #expect(map.statistics.waiting == 1)
    for key in 2...3 { origin.gate(key).open() }
    #expect(try await second.value == 102)
    #expect(try await third.value == 103)
  }
}
