import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `The events of a cache` {
  let clock = ManualClock()

  @Test func `the events of a cache report what happens to each key, in order`() async throws {
    var policy = CachePolicy()
    policy.staleWhileRevalidate = .seconds(60)
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) { key in
      if key == 3 { throw Broken(reason: "three") }
      return key
    }
    let events = Recorder(map.events())
    _ = try await map.request(1)
    map.store(7, for: 2)
    _ = try? await map.request(3)
    clock.advance(by: policy.timeToLive)
    _ = try await map.request(1)
    // The fetch behind a stale value.
    _ = await events.first(5)
    try await map.clear(2)
    try await map.clear()
    #expect(
      await events.first(7).map(\.description) == [
        "fetched 1", "2 was stored", "fetching 3 failed: \(Broken(reason: "three"))",
        "1 has expired", "fetched 1", "2 was cleared", "everything was cleared",
      ]
    )
  }

  @Test func `the events of a multiplexer name it by its id`() async throws {
    let cache = Multiplexer(id: "profile", clock: clock) { 1 }
    let events = Recorder(cache.events())
    _ = try await cache.request()
    cache.store(2)
    #expect(await events.first(2).map(\.description) == ["fetched profile", "profile was stored"])
  }

  @Test func `the events of a cache report the work and the failures of the cacher`() async throws {
    var policy = CachePolicy()
    policy.cacherRead = .beforeFetch
    let map = MultiplexerMap<Int, Int>(
      policy: policy,
      cacher: SimpleCacher([1: 11]),
      clock: clock
    ) { $0 }
    let events = Recorder(map.events())
    #expect(try await map.request(1) == 11)
    map.store(2, for: 2)
    map.store(3, for: 3)
    try await map.flush()
    #expect(
      await events.first(4).map(\.description) == [
        "the stored copy of 1 was used", "2 was stored", "3 was stored",
        "2 values were written to the cacher",
      ]
    )

    let failing = MultiplexerMap<Int, Int>(
      cacher: SimpleCacher(failure: Broken()),
      clock: clock
    ) { $0 }
    let failures = Recorder(failing.events())
    failing.store(2, for: 2)
    await #expect(throws: CacherError.self) { try await failing.flush() }
    await #expect(throws: Broken.self) { try await failing.clear() }
    #expect(
      await failures.first(4).map(\.description) == [
        "2 was stored", "the cacher failed with 2: \(Broken())", "everything was cleared",
        "the cacher failed with all keys: \(Broken())",
      ]
    )
    #expect(failing.statistics.cacherErrors == 2)
  }

  @Test func `the events of several keys are reported for each of them`() async {
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock) { keys in
      Dictionary(uniqueKeysWithValues: keys.filter { $0 != 2 }.map { ($0, $0) })
    }
    let events = Recorder(map.events())
    _ = await map.request([1, 2, 3])
    let error = MultiplexerError.missingKey("2")
    #expect(
      await events.first(3).map(\.description)
        == ["fetched 1", "fetching 2 failed: \(error)", "fetched 3"]
    )
  }

  @Test(arguments: [CachePolicy.UnobservedFetch.finishAndStore, .cancel])
  func `a cache has no events for hits, joins, or what was cancelled`(
    whenUnobserved: CachePolicy.UnobservedFetch
  ) async throws {
    let gate = Gate()
    var policy = CachePolicy()
    policy.whenUnobserved = whenUnobserved
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) { key in
      try await gate.wait()
      return key
    }
    let events = Recorder(map.events())
    let first = begin { try await map.request(2) }
    let second = begin { try await map.request(2) }
    gate.open()
    _ = (try await first.value, try await second.value, try await map.request(2))
    gate.close()
    if whenUnobserved == .cancel {
      let doomed = begin { try await map.request(3) }
      await gate.arrivals(2)
      doomed.cancel()
      _ = await doomed.result
    }
    map.store(9, for: 9)
    #expect(await events.first(2).map(\.description) == ["fetched 2", "9 was stored"])
  }

  @Test func `detailed events report how many requests joined a fetch, before its outcome`()
    async throws
  {
    let gate = Gate()
    let map = MultiplexerMap<Int, Int>(clock: clock) { key in
      try await gate.wait()
      if key == 3 { throw Broken(reason: "three") }
      return key
    }
    let cache = Multiplexer(id: "profile", clock: clock) { () async throws -> Int in
      try await gate.wait()
      return 1
    }
    let (plain, details) = (Recorder(map.events()), Recorder(map.detailedEvents()))
    let ofCache = Recorder(cache.detailedEvents())
    let requests = [1, 2, 2, 3, 3, 3].map { key in begin { try await map.request(key) } }
    let others = [begin { try await cache.request() }, begin { try await cache.request() }]
    gate.open()
    for request in requests + others { _ = await request.result }
    map.store(9, for: 9)
    let failure = "fetching 3 failed: \(Broken(reason: "three"))"
    let lines = await details.first(6).map(\.description)
    #expect(
      Set(lines) == [
        "fetched 1", "the fetch of 2 was joined by 1", "fetched 2",
        "the fetch of 3 was joined by 2", failure, "9 was stored",
      ]
    )
    let places = ["the fetch of 2 was joined by 1", "fetched 2"].map(lines.firstIndex(of:))
    #expect(try #require(places[0]) < #require(places[1]))
    let plainLines = await Set(plain.first(4).map(\.description))
    #expect(plainLines == ["fetched 1", "fetched 2", failure, "9 was stored"])
    #expect(
      await ofCache.first(2).map(\.description) == [
        "the fetch of profile was joined by 1", "fetched profile",
      ]
    )
  }

  @Test func `the events of a cache begin with the subscription, and reach every subscriber alike`()
    async throws
  {
    let map = MultiplexerMap<Int, Int>(clock: clock) { $0 }
    map.store(1, for: 1)
    let first = Recorder(map.events())
    map.store(2, for: 2)
    let second = Recorder(map.events())
    map.store(3, for: 3)
    #expect(await first.first(2).map(\.description) == ["2 was stored", "3 was stored"])
    #expect(await second.first(1).map(\.description) == ["3 was stored"])
  }

  @Test func `the events of a cache keep what the policy of a slow subscriber requires`()
    async throws
  {
    let map = MultiplexerMap<Int, Int>(clock: clock) { $0 }
    let stream = map.events(bufferingPolicy: .bufferingNewest(2))
    for key in 1...9 { map.store(key, for: key) }
    let events = Recorder(stream)
    #expect(await events.first(2).map(\.description) == ["8 was stored", "9 was stored"])
  }

  @Test func `the events of a cache end with the cache, which they do not keep alive`() async throws
  {
    var map: MultiplexerMap<Int, Int>? = MultiplexerMap(clock: clock) { $0 }
    var cache: Multiplexer<Int>? = Multiplexer(clock: clock) { 1 }
    let ofMap = try Recorder(#require(map).events())
    let ofCache = try Recorder(#require(cache).events())
    map?.store(1, for: 1)
    cache?.store(1)
    map = nil
    cache = nil
    #expect(await ofMap.finished().count == 1)
    #expect(await ofCache.finished().count == 1)
  }

  @Test func `the events of a cache name their keys under no lock`() async throws {
    let calls = RecordedChannel<@Sendable () -> Void>()
    let map = MultiplexerMap<TalkingKey, Int>(capacity: .count(1), clock: clock) { _ in 1 }
    calls.send { [weak map] in
      _ = map?.statistics
      map?.clearMemory()
    }
    _ = await calls.recorder.first(1)
    let events = Recorder(map.events())
    for number in 0..<3 {
      let key = TalkingKey(number: number) { for call in calls.recorder.elements { call() } }
      _ = try await map.request(key)
      map.store(2, for: key)
    }
    #expect(await events.first(6).count == 6)
  }
}

/// A key that runs a closure when its name is read.
private struct TalkingKey: Hashable, Sendable, CustomStringConvertible {
  let number: Int
  let onDescription: @Sendable () -> Void

  var description: String {
    onDescription()
    return "key \(number)"
  }

  static func == (left: Self, right: Self) -> Bool { left.number == right.number }

  func hash(into hasher: inout Hasher) { hasher.combine(number) }
}
