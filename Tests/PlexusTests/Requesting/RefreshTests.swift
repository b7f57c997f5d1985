import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A refresh` {
  let clock = ManualClock()
  let gate = Gate()

  /// A cache with the value 1, behind a closed gate; every fetch returns the next number.
  private func loaded(
    _ kind: CacheKind,
    policy: CachePolicy = CachePolicy()
  ) async throws -> CacheUnderTest<Int> {
    let tally = Tally()
    let cache = kind.make(policy: policy, clock: clock) { [gate] in
      let number = tally.increment()
      try await gate.wait()
      return number
    }
    gate.admit(1)
    _ = try await cache.request()
    return cache
  }

  @Test(arguments: CacheKind.allCases)
  func `a refresh of a value at rest fetches with the next request, which waits`(
    kind: CacheKind
  ) async throws {
    let cache = try await loaded(kind)
    cache.refresh()
    cache.refresh()
    #expect(gate.arrivalCount == 1, "Nothing is fetched before it is asked for")
    #expect(cache.cachedValue == 1)
    let caller = begin { try await cache.request() }
    await gate.arrivals(2)
    gate.admit(1)
    #expect(try await caller.value == 2)
    #expect(try await cache.request() == 2)
    #expect(cache.statistics.fetches == 2)
  }

  @Test(.guarantee(.refreshCausesOneMoreFetch), arguments: CacheKind.allCases)
  func `a refresh returns a reference whose requests wait for what was fetched after it`(
    kind: CacheKind
  ) async throws {
    let cache = try await loaded(kind)
    let refreshed = cache.refresh()
    let first = begin { try await refreshed.request() }
    let second = begin { try await refreshed.request() }
    await gate.arrivals(2)
    #expect(try await cache.request() == 1, "Others keep getting the old value meanwhile")
    #expect(try await cache.response().isStale == false)
    gate.admit(1)
    #expect(try await first.value == 2)
    #expect(try await second.value == 2)
    #expect(try await refreshed.request() == 2)
    #expect(cache.statistics.counts == CacheStatistics(hits: 3, misses: 2, joins: 1, fetches: 2))
  }

  @Test(.guarantee(.refreshCausesOneMoreFetch), arguments: CacheKind.allCases)
  func `a refresh during a fetch makes one more run after it, however many refreshes there were`(
    kind: CacheKind
  ) async throws {
    let cache = try await loaded(kind)
    cache.refresh()
    let early = begin { try await cache.request() }
    await gate.arrivals(2)
    let references = (0..<5).map { _ in cache.refresh() }
    let late = references.map { reference in begin { try await reference.request() } }
    #expect(try await cache.request() == 1, "Plain requests keep getting the old value")
    #expect(gate.waiterCount == 1, "Never two fetches at a time")

    gate.admit(1)
    #expect(try await early.value == 2)
    await gate.arrivals(3)
    #expect(try await cache.request() == 2, "It is newer than the one before, and serves meanwhile")
    gate.admit(1)
    for caller in late { #expect(try await caller.value == 3) }
    #expect(cache.cachedValue == 3)
    #expect(cache.statistics.fetches == 3)
  }

  @Test(arguments: CacheKind.allCases)
  func `a refresh during the very first fetch leaves its callers their result`(
    kind: CacheKind
  ) async throws {
    let tally = Tally()
    let cache = kind.make(clock: clock) { [gate] in
      let number = tally.increment()
      try await gate.wait()
      return number
    }
    let early = begin { try await cache.request() }
    await gate.arrivals(1)
    let refreshed = cache.refresh()
    let late = begin { try await refreshed.request() }
    let plain = begin { try await cache.request() }
    gate.admit(1)
    #expect(try await early.value == 1)
    #expect(try await plain.value == 1)
    await gate.arrivals(2)
    gate.admit(1)
    #expect(try await late.value == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `a refresh runs its fetch also without callers`(kind: CacheKind) async throws {
    let cache = try await loaded(kind)
    cache.refresh()
    let early = begin { try await cache.request() }
    await gate.arrivals(2)
    cache.refresh()
    let states = Recorder(cache.subscribe())
    gate.open()
    #expect(try await early.value == 2)
    #expect(
      await states.first(4).map(\.name) == ["loading 1", "loaded 2", "loading 2", "loaded 3"]
    )
  }

  @Test(arguments: CacheKind.allCases)
  func `a refresh is served by the fetch after a failed one`(kind: CacheKind) async throws {
    let origin = ScriptedFetcher<Int>(
      [.success(1), .failure(Broken()), .failure(Broken()), .success(4)],
      gate: gate
    )
    let cache = kind.make(clock: clock) { try await origin.fetch() }
    gate.admit(1)
    _ = try await cache.request()
    let first = cache.refresh()
    let early = begin { try await first.request() }
    await gate.arrivals(2)
    let second = cache.refresh()
    let late = begin { try await second.request() }
    gate.admit(1)
    await #expect(throws: Broken()) { try await early.value }
    await gate.arrivals(3)
    #expect(try await cache.request() == 1)
    gate.open()
    await #expect(throws: Broken()) { try await late.value }
    #expect(try await first.request() == 4)
    #expect(try await second.request() == 4)
    #expect(origin.count == 4)
  }

  @Test(arguments: CacheKind.allCases)
  func `a refresh does not delay others once an expired value is being renewed anyway`(
    kind: CacheKind
  ) async throws {
    var policy = CachePolicy()
    policy.timeToLive = .seconds(60)
    policy.staleWhileRevalidate = .seconds(30)
    let cache = try await loaded(kind, policy: policy)
    let refreshed = cache.refresh()
    let caller = begin { try await refreshed.request() }
    await gate.arrivals(2)
    clock.advance(by: .seconds(60))
    let stale = try await cache.response()
    #expect(stale.value == 1)
    #expect(stale.isStale)
    clock.advance(by: .seconds(30))
    let joiner = begin { try await cache.request() }
    gate.open()
    #expect(try await joiner.value == 2)
    #expect(try await caller.value == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `a refresh does not bind the requests of an earlier reference`(kind: CacheKind) async throws
  {
    let cache = try await loaded(kind)
    let first = cache.refresh()
    let waiting = begin { try await first.request() }
    await gate.arrivals(2)
    let second = cache.refresh()
    gate.admit(1)
    #expect(try await waiting.value == 2)
    await gate.arrivals(3)
    #expect(try await first.request() == 2, "Fetched after the first refresh")
    let insisting = begin { try await second.request() }
    gate.admit(1)
    #expect(try await insisting.value == 3)
  }

  @Test(arguments: CacheKind.allCases)
  func `a refresh during a fetch that is cancelled then still runs one more`(
    kind: CacheKind
  ) async throws {
    var policy = CachePolicy()
    policy.whenUnobserved = .cancel
    let cache = try await loaded(kind, policy: policy)
    cache.refresh()
    let early = begin { try await cache.request() }
    await gate.arrivals(2)
    let refreshed = cache.refresh()
    let late = begin { try await refreshed.request() }
    early.cancel()
    await #expect(throws: CancellationError.self) { try await early.value }
    await gate.arrivals(3)
    gate.open()
    #expect(try await late.value == 3)
  }

  @Test(arguments: CacheKind.allCases)
  func `a refresh is satisfied by a value that is stored after it`(kind: CacheKind) async throws {
    let cache = try await loaded(kind)
    let refreshed = cache.refresh()
    cache.store(7)
    #expect(try await refreshed.request() == 7)
    #expect(try await cache.request() == 7)
    #expect(gate.arrivalCount == 1)
  }

  @Test func `a refresh of one key does not affect the others`() async throws {
    let tally = Tally()
    let map = MultiplexerMap<String, Int>(clock: clock) { _ in tally.increment() }
    _ = try await map.request("a")
    _ = try await map.request("b")
    let refreshed = map.refresh("a")
    #expect(try await refreshed.request("b") == 2)
    #expect(try await refreshed.request("c") == 3)
    #expect(try await refreshed.request("a") == 4)
    #expect(try await map.request("a") == 4)
  }

  @Test func `a refresh of one key after another insists on each of them`() async throws {
    let tally = Tally()
    let map = MultiplexerMap<String, Int>(clock: clock) { _ in tally.increment() }
    _ = try await map.request("a")
    _ = try await map.request("b")
    let refreshed = map.refresh("a").refresh("b")
    #expect(try await refreshed.request("a") == 3)
    #expect(try await refreshed.request("b") == 4)
  }

  @Test func `a refresh of all keys marks each of them, and fetches none by itself`() async throws {
    let tally = Tally()
    let map = MultiplexerMap<Int, Int>(clock: clock) { _ in tally.increment() }
    for key in 0..<100 { _ = try await map.request(key) }
    let refreshed = map.refreshAll()
    #expect(tally.value == 100)
    for key in 0..<100 { #expect(try await refreshed.request(key) > 100) }
    for key in 0..<100 { #expect(try await map.request(key) > 100) }
    #expect(tally.value == 200)
  }

  @Test func `a refresh of all keys runs one more fetch for each key in flight`() async throws {
    let map = MultiplexerMap<Int, String>(clock: clock) { [gate] key in
      try await gate.wait()
      return "\(key)"
    }
    let early = begin { try await map.request(1) }
    await gate.arrivals(1)
    let refreshed = map.refreshAll()
    let late = begin { try await refreshed.request(1) }
    gate.admit(1)
    #expect(try await early.value == "1")
    await gate.arrivals(2)
    gate.admit(1)
    #expect(try await late.value == "1")
  }
}
