import PlexusTesting
import Synchronization
import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Watched flights` {
  private func makeCache(
    fetch: @escaping @concurrent @Sendable (Int) async throws -> Int = { $0 }
  ) -> KeyedCache<Int, Int> {
    KeyedCache(
      id: nil,
      type: Int.self,
      namesKeys: true,
      policy: CachePolicy(),
      clock: ContinuousClock(),
      fetch: KeyedCache.fetch { (key: Int) in try await fetch(key) }
    )
  }

  @Test func `watched flights keep the time of their first insertion until they are removed`() {
    let (first, second) = (Flight(), Flight())
    var state = WatchedFlightsState<Flight>()
    state.insert(first, since: 1)
    state.insert(second, since: 2)
    state.insert(first, since: 3)
    #expect(state.items.map(\.start).sorted() == [1, 2])
    #expect(state.remove(first)?.start == 1)
    #expect(state.remove(first) == nil)
    #expect(state.items.map(\.start) == [2])
  }

  @Test func `flights are no longer listed after a request for none`() {
    let cache = makeCache()
    #expect(cache.flightCopies(limit: 1).isEmpty)
    let isWatched = cache.watchesFlights.load(ordering: .relaxed)
    #expect(isWatched)
    #expect(cache.flightCopies(limit: 0).isEmpty)
    let isStillWatched = cache.watchesFlights.load(ordering: .relaxed)
    #expect(!isStillWatched)
  }

  @Test func `watched flights are forgotten after many insertions without a read`() {
    let flight = Flight()
    var state = WatchedFlightsState<Flight>()
    for _ in 0..<WatchedFlightsState<Flight>.patience { state.insert(flight, since: 0) }
    #expect(!state.isForgotten)
    state.insert(flight, since: 0)
    #expect(state.isForgotten)
    state.noteRead()
    #expect(!state.isForgotten && state.items.count == 1)
    #expect(state.removeAll().count == 1)
    #expect(state.items.isEmpty)
  }

  @Test func `a cache stops watching its flights when no reader looks any longer`() {
    let engine = makeCache()
    #expect(engine.flightCopies(limit: 1).isEmpty)
    #expect(engine.isWatching)
    let flights = (0..<1 << 10).map { _ in Flight() }
    for _ in 0...WatchedFlightsState<Flight>.patience >> 10 { engine.watch(flights) }
    #expect(!engine.isWatching)
    #expect(engine.watchedFlights.isEmpty)
    #expect(engine.flightCopies(limit: 1).isEmpty)
    #expect(engine.isWatching)
  }

  @Test func `a flight is watched from its launch to its end`() async throws {
    let gate = Gate()
    let cache = makeCache { key in
      try await gate.wait()
      return key
    }
    #expect(cache.flightCopies(limit: 1).isEmpty)
    let caller = begin {
      try await cache.request(7, hash: cache.hasher.hash(7), ticket: .none).value
    }
    await gate.arrivals(1)
    #expect(cache.watchedFlights.count == 1)
    gate.open()
    #expect(try await caller.value == 7)
    // The thread that ends a flight takes it out when its callers have been resumed.
    let end = ContinuousClock.now + .seconds(20)
    while !cache.watchedFlights.isEmpty, ContinuousClock.now < end { await Task.detached {}.value }
    #expect(cache.watchedFlights.isEmpty)
    #expect(cache.flightCopies(limit: 1).isEmpty)
  }

  @Test func `a flight that has ended is not watched, whichever comes first`() {
    let engine = makeCache()
    let flight = Flight()
    flight.end(with: Outcome(.cancelled, error: CancellationError()))
    engine.watch(flight, since: 0)
    #expect(engine.watchedFlights.isEmpty)
  }
}

extension CacheEngine {
  fileprivate var isWatching: Bool { watchesFlights.load(ordering: .relaxed) }
}
