import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `An entry of a map` {
  @Test(.guarantee(.entriesAreStates))
  func `an entry of a map has the calls of a multiplexer, for its key`()
    async throws
  {
    let origin = Tally()
    let map = MultiplexerMap<String, Int> { key in key.count * 100 + origin.increment() }
    let entry = map["Ada"]
    #expect(entry.key == "Ada")
    #expect(entry.cachedValue == nil)
    #expect(entry.requestImmediately() == nil)
    #expect(try await entry.request() == 301)
    #expect(entry.requestImmediately() == 301)
    #expect(try await entry.response().source == .memory)
    #expect(try await entry.refresh().request() == 302)
    #expect(try await map.request("Ada") == 302)
    entry.store(7)
    #expect(map.cachedValue("Ada") == 7)
    #expect(entry.current.name == "loaded 7")
    try await entry.clear()
    #expect(map.cachedValue("Ada") == nil)
    #expect(map.cachedValue("Grace") == nil)
    #expect(entry.current.name == "unknown")
  }

  @Test(.guarantee(.entriesAreStates)) func `an entry of a map is updated and cleared by itself`()
    async throws
  {
    let map = MultiplexerMap<Int, Int> { $0 * 10 }
    let entry = map[7]
    #expect(entry.update { $0 += 1 } == nil)
    #expect(try await entry.request() == 70)
    #expect(entry.update { $0 += 1 } == 71)
    let saved = try await entry.update(optimistically: { $0 += 1 }, commit: { "saved" })
    #expect(saved == "saved")
    #expect(map.cachedValue(7) == 72)
    await #expect(throws: CancellationError.self) {
      try await entry.update(optimistically: { $0 = 0 }, commit: { throw CancellationError() })
    }
    #expect(entry.cachedValue == 72)
    map.store(1, for: 8)
    entry.clearMemory()
    #expect(map.keys == [8])
  }

  @Test(.guarantee(.entriesAreStates))
  func `an entry of a map is prefetched without a caller, unless it is fresh`()
    async throws
  {
    let gate = Gate()
    let map = MultiplexerMap<Int, Int> { key in
      try await gate.wait()
      return key * 10
    }
    let entry = map[7]
    entry.prefetch()
    #expect(entry.current.isLoading)
    entry.prefetch()
    gate.open()
    #expect(try await entry.request() == 70)
    entry.prefetch()
    #expect(entry.current.name == "loaded 70")
    #expect(map.statistics.fetches == 1)
    #expect(map.statistics.misses == 0, "a prefetch is no request")
  }

  @Test(.guarantee(.entriesAreStates))
  func `an entry of a map is a source of states for streams, closures and parts`() async {
    let map = MultiplexerMap<Int, Int> { $0 }
    let entry = map[7]
    let states = entry.subscription(bufferingPolicy: .unbounded)
    let log = Log<Int?>()
    let token = entry.observe { log.append($0.value) }
    let parts = entry.select { $0.value ?? 0 }.subscription(bufferingPolicy: .unbounded)
    #expect(map.subscriberCount(of: 7) == 3)
    map.store(1, for: 7)
    map.store(2, for: 8)
    entry.store(3)
    #expect(await states.first(3).map(\.name) == ["unknown", "loaded 1", "loaded 3"])
    #expect(await log.first(3) == [nil, 1, 3])
    #expect(await parts.first(3) == [0, 1, 3])
    withExtendedLifetime(token) {}
  }

  @Test(.guarantee(.entriesAreStates))
  func `an entry of a map goes into a zipper, an array and a request`()
    async throws
  {
    let map = MultiplexerMap<Int, Int> { $0 * 10 }
    let (first, second) = try await Zipper(map[1], Request(map[2])).values()
    #expect((first, second) == (10, 20))
    #expect(Request(map[1]).requestImmediately() == 10)
    #expect(Request(map[3]).requestImmediately() == nil)
    #expect(try await [map[1], map[4]].values() == [10, 40])
  }

  @Test(.guarantee(.entriesAreStates))
  func `an entry of a map insists on the refresh of the map that it was made from`() async throws {
    let tally = Tally()
    let map = MultiplexerMap<Int, Int> { _ in tally.increment() }
    _ = try await map.request(1)
    #expect(try await map.refresh(1)[1].request() == 2)
    #expect(try await map[1].request() == 2)
  }

  @Test(.guarantee(.entriesAreStates))
  func `an entry of a map keeps its map, and its streams do not`() async throws {
    weak var weakMap: MultiplexerMap<Int, Int>?
    var stream: AsyncStream<LoadState<Int>>?
    do {
      let map = MultiplexerMap<Int, Int> { $0 }
      weakMap = map
      let entry = map[1]
      stream = entry.subscribe()
      #expect(try await entry.request() == 1)
    }
    #expect(weakMap == nil)
    #expect(await stream?.all().last?.name == "loaded 1")
  }
}
