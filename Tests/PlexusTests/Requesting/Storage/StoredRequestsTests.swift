import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A stored copy, read before the first fetch` {
  let cacher = ControlledCacher<Int>()

  @Test(.guarantee(.cachersAreReadAfterFailures), arguments: CacheKind.allCases)
  func `a stored copy that is read first answers instead of a fetch while it is fresh`(
    kind: CacheKind
  ) async throws {
    let time = RealTime()
    cacher.entries["key"] = CacheEntry(7, age: .seconds(600))
    let cache = kind.make(storedIn: cacher, policy: .readingFirst()) { 1 }
    let events = Recorder(cache.occurrences())
    let states = Recorder(cache.subscribe())
    let response = try await cache.response()
    #expect(response.value == 7)
    #expect(response.source == .cacher)
    #expect(!response.isStale)
    #expect(time.allows(response.age, for: .seconds(600)))
    #expect(cache.statistics.fetches == 0)
    #expect(cache.statistics.restorations == 1)
    #expect(cache.statistics.misses == 1)
    #expect(await events.first(1).map(\.description) == ["the stored copy of key was used"])
    #expect(await states.first(3).map(\.name) == ["unknown", "loading", "loaded 7"])
    let second = try await cache.response()
    #expect(second.source == .memory)
    #expect(second.age >= .seconds(600))
    #expect(cacher.count(of: .read) == 1)
  }

  @Test(arguments: CacheKind.allCases)
  func `a stored copy is fresh for the rest of its time to live only`(kind: CacheKind) async throws
  {
    // In hours, compared with which the real duration of the test is negligible.
    cacher.entries["key"] = CacheEntry(7, age: .seconds(10 * 3_600))
    var policy = CachePolicy.readingFirst()
    policy.timeToLive = .seconds(30 * 3_600)
    let clock = ManualClock()
    let cache = kind.make(storedIn: cacher, policy: policy, clock: clock) { 1 }
    #expect(try await cache.request() == 7)
    clock.advance(by: .seconds(10 * 3_600))
    #expect(try await cache.request() == 7)
    clock.advance(by: .seconds(10 * 3_600))
    #expect(try await cache.request() == 1)
  }

  @Test(arguments: CacheKind.allCases)
  func `a stored copy answers at once while it may be revalidated, and one fetch renews it`(
    kind: CacheKind
  ) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(2_000), validator: "tag")
    let gate = Gate()
    let contexts = RecordedChannel<FetchContext<Int>>()
    let policy = CachePolicy.readingFirst(staleFor: .seconds(1_000))
    let cache = kind.makeInformed(storedIn: cacher, policy: policy) { context in
      contexts.send(context)
      try await gate.wait()
      return .value(8)
    }
    let response = try await cache.response()
    #expect(response.value == 7)
    #expect(response.source == .cacher)
    #expect(response.isStale)
    #expect(response.error == nil)
    await gate.arrivals(1)
    #expect(try await cache.request() == 7)
    let states = Recorder(cache.subscribe())
    gate.open()
    #expect(await states.first(2).map(\.name) == ["loading 7", "loaded 8"])
    #expect(cache.statistics.fetches == 1)
    let context = await contexts.recorder.first(1).first
    #expect(context?.previousValue == 7)
    #expect(context?.validator == "tag")
  }

  @Test(.guarantee(.storedEntriesHaveTheTimeOfDay), arguments: CacheKind.allCases)
  func `a stored copy that is too old is what the fetch renews`(kind: CacheKind) async throws {
    let time = RealTime()
    cacher.entries["key"] = CacheEntry(7, age: .seconds(2_000), validator: "tag")
    let cache = kind.makeInformed(storedIn: cacher, policy: .readingFirst()) { context in
      #expect(context.previousValue == 7)
      #expect(context.validator == "tag")
      return .notModified()
    }
    let response = try await cache.response()
    #expect(response.value == 7)
    #expect(response.source == .fetch)
    #expect(!response.isStale)
    #expect(response.age == .zero)
    #expect(cache.statistics.fetches == 1)
    try await cache.flush()
    let entry = try #require(cacher.entries["key"])
    #expect(
      time.allows(wallTime() - entry.storedAt, for: .zero),
      "It counts as fetched just now"
    )
    #expect(entry.validator == "tag")
  }

  @Test(arguments: CacheKind.allCases)
  func `a stored copy that is too old is used if renewal fails, else callers get the error`(
    kind: CacheKind
  ) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(2_000))
    let origin = ScriptedFetcher<Int>([
      .failure(Broken()), .failure(Offline()), .failure(Offline()), .success(2),
    ])
    let cache = kind.make(storedIn: cacher, policy: .readingFirst()) { try await origin.fetch() }
    await #expect(throws: Broken.self) { try await cache.request() }
    #expect(cacher.value() == 7, "A stored copy is never dropped because of an error")
    let response = try await cache.response()
    #expect(response.value == 7)
    #expect(response.source == .cacher)
    #expect(response.isStale)
    #expect(response.error is Offline)
    #expect(try await cache.response().source == .memory)
    #expect(try await cache.request() == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `a missing copy is fetched, and read by one of many callers`(
    kind: CacheKind
  ) async throws {
    let gate = cacher.hold(.read)
    let cache = kind.make(storedIn: cacher, policy: .readingFirst()) { 1 }
    let callers = (0..<5).map { _ in begin { try await cache.request() } }
    await gate.arrivals(1)
    #expect(cache.statistics.fetches == 0)
    gate.open()
    for caller in callers { #expect(try await caller.value == 1) }
    #expect(cacher.count(of: .read) == 1)
    #expect(cache.statistics.fetches == 1)
    #expect(cache.statistics.joins == 4)
  }

  @Test(.guarantee(.storedEntriesHaveTheTimeOfDay), arguments: CacheKind.allCases)
  func `a stored copy from the future is stale, neither fresh nor an error`(
    kind: CacheKind
  ) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(-3_600))
    let cache = kind.make(storedIn: cacher, policy: .readingFirst()) { 1 }
    #expect(try await cache.request() == 1)
    // It is removed once it has been read.
    try await cache.flush()
    cacher.entries["key"] = CacheEntry(7, age: .seconds(-3_600))

    let policy = CachePolicy.readingFirst(staleFor: .seconds(60))
    let patient = kind.make(storedIn: cacher, policy: policy) { 2 }
    let response = try await patient.response()
    #expect(response.value == 7)
    #expect(response.isStale)
    #expect(response.age >= .zero && response.age < .seconds(60))
    try await patient.flush()
    cacher.entries["key"] = CacheEntry(7, age: .seconds(-3_600))

    let away = kind.make(storedIn: cacher, policy: .readingFirst()) { throw Offline() }
    #expect(try await away.request() == 7)
  }

  @Test(
    arguments: CacheKind.allCases,
    [Duration.seconds(Int64.min), .seconds(-20_000_000_000), .zero, .seconds(Int64.max)]
  )
  func `a stored copy of no possible time is stale, and has an age`(
    kind: CacheKind,
    storedAt: Duration
  ) async throws {
    cacher.entries["key"] = CacheEntry(value: 7, storedAt: storedAt)
    let clock = ManualClock()
    let cache = kind.make(storedIn: cacher, clock: clock) { throw Offline() }
    clock.advance(by: .seconds(1_000))
    #expect(try await cache.request() == 7)
    clock.advance(by: .seconds(1_000))
    let response = try await cache.response()
    #expect(response.value == 7)
    #expect(response.age >= .seconds(1_000))
    clock.advance(by: .seconds(6_000_000_000))
    #expect(try await cache.response().age >= .seconds(6_000_000_000))
  }

  @Test(arguments: CacheKind.allCases)
  func `a stored copy is fresh for the time to live that came with it`(kind: CacheKind) async throws
  {
    let cache = kind.make(storedIn: cacher, policy: .readingFirst()) { 1 }
    cacher.entries["key"] = CacheEntry(7, age: .seconds(600), timeToLive: .seconds(500))
    #expect(try await cache.request() == 1)
    let other = kind.make(storedIn: cacher, policy: .readingFirst()) { 1 }
    cacher.entries["key"] = CacheEntry(8, age: .seconds(5_000), timeToLive: .seconds(6_000))
    #expect(try await other.request() == 8)
  }

  @Test(arguments: CacheKind.allCases)
  func `a stored copy keeps the validator and the time to live of its value`(
    kind: CacheKind
  ) async throws {
    let time = RealTime()
    let clock = ManualClock()
    let cache = kind.makeInformed(storedIn: cacher, clock: clock) { _ in
      .value(7, timeToLive: .seconds(5), validator: "tag")
    }
    _ = try await cache.request()
    clock.advance(by: .seconds(100))
    try await cache.flush()
    let entry = try #require(cacher.entries["key"])
    #expect(entry.validator == "tag")
    #expect(entry.timeToLive == .seconds(5))
    #expect(
      time.allows(wallTime() - entry.storedAt, for: .seconds(100)),
      "It is as old as the value"
    )
  }

  @Test(.guarantee(.refreshCausesOneMoreFetch), arguments: CacheKind.allCases)
  func `a stored copy from before a refresh is no answer`(kind: CacheKind) async throws {
    for refreshes in [{ (cache: CacheUnderTest<Int>) in _ = cache.refresh() }, { $0.refreshAll() }]
    {
      cacher.entries["key"] = CacheEntry(7, age: .seconds(10))
      let origin = ScriptedFetcher<Int>([.failure(Broken()), .failure(Offline()), .success(1)])
      let policy = CachePolicy.readingFirst(staleFor: .seconds(100))
      let cache = kind.make(storedIn: cacher, policy: policy) { try await origin.fetch() }
      refreshes(cache)
      await #expect(throws: Broken.self) { try await cache.request() }
      cache.clearMemory()
      let response = try await cache.response()
      #expect(response.value == 7 && response.error is Offline, "It may stand in nevertheless")
      cache.clearMemory()
      #expect(try await cache.request() == 1)
    }
  }

  @Test(arguments: CacheKind.allCases, [false, true])
  func `a stored copy from before a refresh is no answer while it is written, nor afterwards`(
    kind: CacheKind,
    isHeld: Bool
  ) async throws {
    let origin = ScriptedFetcher<Int>([.success(2), .success(3)])
    let policy = CachePolicy.readingFirst(staleFor: .seconds(100))
    let cache = kind.make(storedIn: cacher, policy: policy) { try await origin.fetch() }
    let gate = isHeld ? cacher.hold(.store) : nil
    for refreshes in [{ (cache: CacheUnderTest<Int>) in _ = cache.refresh() }, { $0.refreshAll() }]
    {
      cache.store(1)
      refreshes(cache)
      cache.clearMemory()
      if isHeld { await gate?.arrivals(1) } else { try await cache.flush() }
      #expect(try await cache.response().source == .fetch)
    }
    gate?.open()
    try await cache.flush()
    #expect(cacher.value() == 3)
  }

  @Test(arguments: CacheKind.allCases)
  func `a stored copy of a fetch in flight at a refresh is no answer for it`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .failure(Broken()), .success(3)], gate: gate)
    let cache = kind.make(storedIn: cacher, policy: .readingFirst()) { try await origin.fetch() }
    let early = begin { try await cache.request() }
    await gate.arrivals(1)
    let refreshed = cache.refresh()
    let late = begin { try await refreshed.request() }
    gate.open()
    #expect(try await early.value == 1)
    await #expect(throws: Broken.self) { try await late.value }
    #expect(cache.cachedValue == 1)
    try await cache.flush()
    cache.clearMemory()
    #expect(try await cache.request() == 3)
  }

  @Test(arguments: CacheKind.allCases)
  func `a stored copy from the future is no answer after a refresh`(kind: CacheKind) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(-3_600))
    let policy = CachePolicy.readingFirst(staleFor: .seconds(100))
    let cache = kind.make(storedIn: cacher, policy: policy) { 1 }
    cache.refresh()
    #expect(try await cache.response().source == .fetch)
  }

  @Test(arguments: CacheKind.allCases)
  func `a stored copy by another one after a refresh is an answer again`(
    kind: CacheKind
  ) async throws {
    let cache = kind.make(storedIn: cacher, policy: .readingFirst()) { 1 }
    cache.refresh()
    await clockMovesOn()
    cacher.entries["key"] = CacheEntry(9, age: .zero)
    #expect(try await cache.response().source == .cacher)
  }

  @Test(arguments: CacheKind.allCases)
  func `a stored copy does not replace a value that was stored while it was read`(
    kind: CacheKind
  ) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(10))
    let gate = cacher.hold(.read)
    let cache = kind.make(storedIn: cacher, policy: .readingFirst()) { 1 }
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    cache.store(9)
    #expect(try await caller.value == 9)
    gate.open()
    try await cache.flush()
    #expect(cache.cachedValue == 9)
    #expect(cacher.value() == 9)
  }

  @Test
  func `a stored copy is read for each key of a bulk request, and the rest is fetched at once`()
    async throws
  {
    for key in 0..<40 { cacher.entries["\(key)"] = CacheEntry(key, age: .seconds(10)) }
    cacher.entries["40"] = CacheEntry(0, age: .seconds(100_000))
    let calls = RecordedChannel<[Int]>()
    let map = MultiplexerMap<Int, Int>.bulk(policy: .readingFirst(), cacher: cacher) { keys in
      calls.send(keys.sorted())
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, 10 * $0) })
    }
    let results = await map.request(Array(0...42))
    for key in 0...42 { #expect(try results[key]?.get() == (key < 40 ? key : 10 * key)) }
    #expect(await calls.recorder.first(1) == [[40, 41, 42]])
    #expect(map.statistics.fetches == 1)
    #expect(map.statistics.restorations == 40)
  }

  @Test(arguments: [true, false])
  func `stored copies are read after errors that the policy allows, with one question a key`(
    isAllowed: Bool
  ) async throws {
    for key in 0..<3 { cacher.entries["\(key)"] = CacheEntry(key, age: .seconds(10)) }
    let asked = Log<String>()
    var policy = CachePolicy()
    policy.usesCachedValue = { error in
      asked.append("\(error)")
      return isAllowed
    }
    let map = MultiplexerMap<Int, Int>.bulk(policy: policy, cacher: cacher) { _ in throw Broken() }
    let results = await map.request([0, 1, 2])
    for key in 0..<3 {
      let value = try? results[key]?.get()
      #expect(value == (isAllowed ? key : nil))
    }
    #expect(asked.count == 3)
    let single = MultiplexerMap<Int, Int>(policy: policy, cacher: cacher) { _ in throw Broken() }
    let value = try? await single.request(1)
    #expect(value == (isAllowed ? 1 : nil))
    #expect(asked.count == 4)
  }

  @Test(arguments: CacheKind.allCases)
  func `a stored copy by a cacher that requests its own value is not waited for`(
    kind: CacheKind
  ) async throws {
    for policy in [CachePolicy.readingFirst(), CachePolicy()] {
      let cacher = ControlledCacher<Int>()
      let origin = ScriptedFetcher<Int>(
        policy.cacherRead == .beforeFetch ? [.success(1)] : [.failure(Offline())]
      )
      let cache = kind.make(storedIn: cacher, policy: policy) { try await origin.fetch() }
      cacher.onCall { _ in _ = try await cache.request() }
      _ = try? await cache.request()
      #expect(cache.statistics.cacherErrors == 1)
      cacher.onCall { _ in }
    }
  }

  @Test
  func `a stored copy by a cacher that requests another key of the same bulk is not waited for`()
    async throws
  {
    let map = MultiplexerMap<Int, Int>.bulk(policy: .readingFirst(), cacher: cacher) { keys in
      Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    cacher.onCall { call in if call.keys == ["1"] { _ = try await map.request(2) } }
    let results = await map.request([1, 2])
    #expect(try results[1]?.get() == 1)
    #expect(try results[2]?.get() == 2)
    cacher.onCall { _ in }
  }
}
