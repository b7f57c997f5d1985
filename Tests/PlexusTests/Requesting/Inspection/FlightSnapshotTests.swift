import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A snapshot of fetches` {
  let clock = ManualClock()
  let origin = LimitedOrigin()

  @Test func `a snapshot of fetches has fetches that began before the first one, with their ages`()
    async throws
  {
    let map = origin.makeMap(nil, clock: clock)
    let callers = [begin { try await map.request(1) }, begin { try await map.request(1) }]
    await origin.begins(1)
    clock.advance(by: .seconds(5))
    let flights = map.flights(limit: 10)
    #expect(flights.map(\.key) == [1])
    #expect(flights.map(\.age) == [.seconds(5)])
    #expect(flights.map(\.callerCount) == [2])
    #expect(flights.map(\.isWaiting) == [false])
    origin.gate(1).open()
    for caller in callers { _ = try await caller.value }
    #expect(map.flights(limit: 10).isEmpty)
  }

  @Test func `no fetch is listed after a look with a limit of zero, until the next look`()
    async throws
  {
    let map = origin.makeMap(nil, clock: clock)
    #expect(map.flights(limit: 1).isEmpty)
    #expect(map.flights(limit: 0).isEmpty)
    let caller = begin { try await map.request(1) }
    await origin.begins(1)
    clock.advance(by: .seconds(5))
    #expect(map.flights(limit: 1).map(\.age) == [.seconds(5)])
    #expect(map.flights(limit: 0).isEmpty)
    origin.gate(1).open()
    #expect(try await caller.value == 101)
    #expect(map.flights(limit: 1).isEmpty)
  }

  @Test(.guarantee(.snapshotsOfFetchesAreComplete))
  func `a snapshot of fetches has fetches that began after the first one, in order`()
    async throws
  {
    let map = origin.makeMap(nil, clock: clock)
    #expect(map.flights(limit: 10).isEmpty)
    var callers: [Task<Int, any Error>] = []
    for key in 1...3 {
      callers.append(begin { try await map.request(key) })
      await origin.begins(key)
      clock.advance(by: .seconds(1))
    }
    #expect(map.flights(limit: 10).map(\.key) == [1, 2, 3])
    #expect(map.flights(limit: 10).map(\.age) == [.seconds(3), .seconds(2), .seconds(1)])
    #expect(map.flights(limit: 2).map(\.key) == [1, 2])
    #expect(map.flights(limit: 0).isEmpty)
    origin.gate(2).open()
    _ = try await callers[1].value
    #expect(map.flights(limit: 10).map(\.key) == [1, 3])
    for key in [1, 3] { origin.gate(key).open() }
    for caller in callers { _ = try await caller.value }
    #expect(map.flights(limit: 10).isEmpty)
  }

  @Test(.guarantee(.snapshotsOfFetchesAreComplete))
  func `a snapshot of fetches has one whose key was cleared, until it ends`() async throws {
    let map = origin.makeMap(nil, clock: clock)
    _ = map.flights(limit: 1)
    let caller = begin { try await map.request(1) }
    await origin.begins(1)
    try await map.clear(1)
    let second = begin { try await map.request(1) }
    await origin.begins(2)
    #expect(map.flights(limit: 10).map(\.key) == [1, 1])
    origin.gate(1).open()
    _ = try await (caller.value, second.value)
    #expect(map.flights(limit: 10).isEmpty)
  }

  @Test func `a snapshot of fetches shows which of them wait for a place`() async throws {
    let map = origin.makeMap(1, clock: clock)
    let first = begin { try await map.request(1) }
    await origin.begins(1)
    let second = begin { try await map.request(2) }
    let waiting = map.flights(limit: 10).sorted { $0.key < $1.key }.map(\.isWaiting)
    #expect(waiting == [false, true])
    origin.gate(1).open()
    _ = try await first.value
    await origin.begins(2)
    #expect(map.flights(limit: 10).map(\.isWaiting) == [false])
    origin.gate(2).open()
    _ = try await second.value
    #expect(map.flights(limit: 10).isEmpty)
  }

  @Test func `a snapshot of fetches has one for each key of a fetch of several keys`()
    async throws
  {
    let gate = Gate()
    let map = MultiplexerMap<Int, Int>.bulk(clock: clock) { keys in
      try await gate.wait()
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    for isFirst in [true, false] {
      gate.close()
      map.clearMemory()
      let callers = begin { await map.request([1, 2, 3]) }
      await gate.arrivals(isFirst ? 1 : 2)
      clock.advance(by: .seconds(2))
      let flights = map.flights(limit: 10)
      #expect(flights.map(\.key).sorted() == [1, 2, 3])
      #expect(flights.allSatisfy { $0.age == .seconds(2) && $0.callerCount == 1 && !$0.isWaiting })
      gate.open()
      #expect(try await callers.value.count == 3)
      #expect(map.flights(limit: 10).isEmpty)
    }
  }

  @Test func `a snapshot of fetches has the fetch of a multiplexer`() async throws {
    let gate = Gate()
    let cache = Multiplexer(clock: clock) {
      try await gate.wait()
      return 1
    }
    #expect(cache.flight == nil)
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    clock.advance(by: .seconds(3))
    let flight = try #require(cache.flight)
    #expect(flight.age == .seconds(3) && flight.callerCount == 1 && !flight.isWaiting)
    gate.open()
    _ = try await caller.value
    #expect(cache.flight == nil)
  }

  @Test(.guarantee(.snapshotsOfFetchesAreComplete))
  func `a snapshot of fetches is empty after any number of fetches on many threads`() async {
    let map = MultiplexerMap<Int, Int> { key in
      await Task.detached {}.value
      return key
    }
    await withTaskGroup { group in
      for task in 0..<8 {
        group.addTask {
          for round in 0..<300 {
            if round % 50 == task { _ = map.flights(limit: 10) }
            map.refresh(round % 7)
            _ = try? await map.request(round % 7)
          }
        }
      }
    }
    // A fetch that was queued by the last refresh can still be on its way.
    for key in 0..<7 { _ = try? await map.refresh(key).request(key) }
    #expect(map.flights(limit: 10).isEmpty)
  }
}
