import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `While several keys are fetched` {
  let clock = ManualClock()
  let origin = BulkOrigin()

  @Test func `in a fetch of keys, callers of a cleared key get its result, which is not stored`()
    async throws
  {
    let map = origin.makeMap(clock: clock)
    let early = begin { await map.request([1, 2]) }
    await origin.gate.arrivals(1)
    try await map.clear(1)
    let late = begin { try await map.request(1) }
    await origin.gate.arrivals(2)
    origin.gate.admit(1)
    #expect(outcomes(try await early.value) == [1: "101", 2: "102"])
    #expect(map.cachedValue(1) == nil)
    #expect(map.cachedValue(2) == 102)
    origin.gate.open()
    #expect(try await late.value == 201)
  }

  @Test func `clearing everything leaves nothing of a fetch of several keys`() async throws {
    let map = origin.makeMap(clock: clock)
    let early = begin { await map.request([1, 2]) }
    await origin.gate.arrivals(1)
    try await map.clear()
    origin.gate.open()
    #expect(outcomes(try await early.value) == [1: "101", 2: "102"])
    #expect(map.cachedValue(1) == nil)
    #expect(map.cachedValue(2) == nil)
    #expect(outcomes(await map.request([1, 2])) == [1: "201", 2: "202"])
  }

  @Test func `a repository that is cleared leaves nothing of a fetch of several keys`() async throws
  {
    let repository = MuxRepository()
    let map = origin.makeMap(clock: clock).register(in: repository)
    let early = begin { await map.request([1, 2]) }
    await origin.gate.arrivals(1)
    try await repository.clearAll()
    origin.gate.open()
    #expect(outcomes(try await early.value) == [1: "101", 2: "102"])
    #expect(map.cachedValue(1) == nil)
    #expect(outcomes(await map.request([1, 2])) == [1: "201", 2: "202"])
  }

  @Test func `one more call serves all refreshes of the keys of a fetch, however many came`()
    async throws
  {
    let map = origin.makeMap(clock: clock)
    let early = begin { await map.request([1, 2, 3]) }
    await origin.gate.arrivals(1)
    for _ in 0..<3 { map.refresh(1) }
    let refreshed = map.refreshAll()
    let late = begin { await refreshed.request([1, 2, 3]) }
    origin.gate.admit(1)
    #expect(outcomes(try await early.value) == [1: "101", 2: "102", 3: "103"])
    await origin.gate.arrivals(2)
    #expect(outcomes(await map.request([1, 2])) == [1: "101", 2: "102"])
    origin.gate.open()
    #expect(outcomes(try await late.value) == [1: "201", 2: "202", 3: "203"])
    #expect(origin.calls == [[1, 2, 3], [1, 2, 3]])
    #expect(map.statistics.fetches == 2)
  }

  @Test func `a refresh of one key of a fetch leaves the others alone`() async throws {
    let map = origin.makeMap(clock: clock)
    let early = begin { await map.request([1, 2, 3]) }
    await origin.gate.arrivals(1)
    let refreshed = map.refresh(2)
    let late = begin { try await refreshed.request(2) }
    origin.gate.open()
    #expect(outcomes(try await early.value) == [1: "101", 2: "102", 3: "103"])
    #expect(try await late.value == 202)
    #expect(origin.calls == [[1, 2, 3], [2]])
    #expect(map.cachedValue(2) == 202)
  }

  @Test(arguments: [CachePolicy.UnobservedFetch.finishAndStore, .cancel])
  func `a stored value wins for its key, and the fetch continues for the other keys`(
    whenUnobserved: CachePolicy.UnobservedFetch
  ) async throws {
    var policy = CachePolicy()
    policy.whenUnobserved = whenUnobserved
    let map = origin.makeMap(policy: policy, clock: clock)
    let caller = begin { await map.request([1, 2]) }
    await origin.gate.arrivals(1)
    map.store(7, for: 1)
    #expect(try await map.request(1) == 7)
    #expect(origin.gate.waiterCount == 1)
    origin.gate.open()
    #expect(outcomes(try await caller.value) == [1: "7", 2: "102"])
    #expect(map.cachedValue(1) == 7)
  }

  @Test func `nothing is fetched when all keys of a request were stored`() async throws {
    var policy = CachePolicy()
    policy.whenUnobserved = .cancel
    let map = origin.makeMap(policy: policy, clock: clock)
    let caller = begin { await map.request([1, 2]) }
    await origin.gate.arrivals(1)
    map.store(7, for: 1)
    map.store(8, for: 2)
    #expect(outcomes(try await caller.value) == [1: "7", 2: "8"])
    #expect(origin.gate.waiterCount == 0)
  }

  @Test func `clearing the memory lets a fetch of several keys continue and be stored`()
    async throws
  {
    let map = origin.makeMap(clock: clock)
    let caller = begin { await map.request([1, 2]) }
    await origin.gate.arrivals(1)
    map.clearMemory()
    origin.gate.open()
    #expect(outcomes(try await caller.value) == [1: "101", 2: "102"])
    #expect(map.cachedValue(1) == 101)
  }

  @Test func `subscribers of each key of a fetch are notified, in order`() async throws {
    let map = origin.makeMap(clock: clock)
    let states = [1, 2].map { Recorder(map.subscribe(to: $0, bufferingPolicy: .unbounded)) }
    for recorder in states { _ = await recorder.first(1) }
    let caller = begin { await map.request([1, 2]) }
    origin.gate.open()
    _ = try await caller.value
    #expect(await states[0].first(3).map(\.name) == ["unknown", "loading", "loaded 101"])
    #expect(await states[1].first(3).map(\.name) == ["unknown", "loading", "loaded 102"])
  }

  @Test func `stale stored copies of several keys are returned, and renewed with one call`()
    async throws
  {
    var policy = CachePolicy()
    policy.cacherRead = .beforeFetch
    policy.staleWhileRevalidate = .seconds(3600)
    policy.timeToLive = .zero
    let cacher = SimpleCacher([1: 11, 2: 12, 3: 13])
    let map = MultiplexerMap<Int, Int>.bulk(policy: policy, cacher: cacher, clock: clock) {
      [origin] in try await origin.fetch($0)
    }
    #expect(outcomes(await map.request([1, 2, 3])) == [1: "11", 2: "12", 3: "13"])
    let states = Recorder(map.subscribe(to: 2, bufferingPolicy: .unbounded))
    origin.gate.open()
    #expect(await states.first(2).last?.value == 102)
    #expect(origin.calls == [[1, 2, 3]])
    #expect(map.statistics.restorations == 3)
  }

  // MARK: - Requests inside the fetch

  @Test func `a fetch that requests one of its own keys gets an error`() async throws {
    let own = Loop()
    let map = MultiplexerMap<Int, Int>.bulk(id: "m", clock: clock) { keys in
      let inner = await own.request([2, 7])
      guard case .failure(MultiplexerError.recursiveRequest(let chain))? = inner[2] else {
        return [:]
      }
      #expect(chain == ["m[1], m[2]", "m[1], m[2]"])
      #expect(outcomes(inner)[7] == "7")
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, 42) })
    }
    own.adopt(map)
    map.store(7, for: 7)
    #expect(outcomes(await map.request([1, 2])) == [1: "42", 2: "42"])
  }

  @Test func `a cycle through another map is found, whichever request closes it`() async throws {
    let back = Loop()
    let second = MultiplexerMap<Int, Int>.bulk(id: "b", clock: clock) { keys in
      let inner = await back.request([1])
      guard case .failure(MultiplexerError.recursiveRequest)? = inner[1] else { return [:] }
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    let first = MultiplexerMap<Int, Int>.bulk(id: "a", clock: clock) { keys in
      try await second.request([5, 6]).mapValues { try $0.get() }
        .merging(keys.map { ($0, $0) }) { $1 }
    }
    back.adopt(first)
    #expect(outcomes(await first.request([1, 2])) == [1: "1", 2: "2"])
  }

  @Test func `a fetch can request other keys of its own map`() async throws {
    let own = Loop()
    let map = MultiplexerMap<Int, Int>.bulk(id: "m", clock: clock) { keys in
      guard keys.contains(1) else {
        return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
      }
      let inner = await own.request([5, 6])
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, inner.count * 10 + $0) })
    }
    own.adopt(map)
    #expect(outcomes(await map.request([1, 2])) == [1: "21", 2: "22"])
    #expect(map.cachedValue(5) == 5)
  }

  // MARK: - Release

  @Test func `releasing the map still gives callers of several keys their results, then frees all`()
    async throws
  {
    let alive = Alive()
    do {
      let map = MultiplexerMap<Int, Int>.bulk(clock: clock) { [origin, token = alive.make()] keys in
        withExtendedLifetime(token) {}
        return try await origin.fetch(keys)
      }
      let callers = (0..<3).map { number in begin { await map.request([1, 2, 3 + number]) } }
      await origin.gate.arrivals(3)
      map.refreshAll()
      map.store(7, for: 1)
      origin.gate.open()
      for caller in callers { #expect(try await caller.value.count == 3) }
    }
    await alive.allGone()
  }

  @Test func `a key that is stored while the others are still looked at is not leaked`()
    async throws
  {
    let alive = Alive()
    do {
      let map = MultiplexerMap<Token, Int>.bulk(clock: clock) { keys in
        Dictionary(uniqueKeysWithValues: keys.map { ($0, 1) })
      }
      let keys = [Token(alive), Token(alive)]
      let collection = Interrupted(keys: keys) { if $0 == 1 { map.store(7, for: keys[0]) } }
      let results = await map.request(collection)
      #expect(try results[keys[0]]?.get() == 7)
      #expect(try results[keys[1]]?.get() == 1)
      try await map.clear()
    }
    await alive.allGone()
  }
}

/// A reference from a fetch to its map, which does not keep the map alive.
private final class Loop: Sendable {
  private let channel = RecordedChannel<@Sendable ([Int]) async -> [Int: Result<Int, any Error>]>()

  func adopt(_ map: MultiplexerMap<Int, Int>) {
    channel.send { [weak map] keys in await map?.request(keys) ?? [:] }
  }

  func request(_ keys: [Int]) async -> [Int: Result<Int, any Error>] {
    await channel.recorder.first(1).first?(keys) ?? [:]
  }
}

/// Objects whose release can be awaited.
private final class Alive: Sendable {
  final class Witness: Sendable {
    private let gone: Gate

    init(_ gone: Gate) { self.gone = gone }

    deinit {
      let gone = gone
      Task { try await gone.wait() }
    }
  }

  private let gone = Gate()
  private let made = Tally()

  func make() -> Witness {
    made.increment()
    return Witness(gone)
  }

  func allGone() async {
    await gone.arrivals(made.value)
    gone.open()
  }
}

/// A key whose release can be awaited.
private final class Token: Hashable, Sendable {
  private let witness: Alive.Witness

  init(_ alive: Alive) { witness = alive.make() }

  static func == (left: Token, right: Token) -> Bool { left === right }

  func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// Keys that call a closure when they are iterated.
private struct Interrupted: Collection, Sendable {
  let keys: [Token]
  let onLook: @Sendable (Int) -> Void

  var startIndex: Int { 0 }
  var endIndex: Int { keys.count }

  func index(after index: Int) -> Int { index + 1 }

  subscript(index: Int) -> Token {
    onLook(index)
    return keys[index]
  }
}
