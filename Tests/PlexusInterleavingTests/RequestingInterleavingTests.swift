import Plexus
import PlexusTesting
import Synchronization
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `Requests, in every order` {
    /// A fetch of several jobs that returns the number of its call.
    private final class Origin: Sendable {
      private let calls = Atomic(0)
      private let now = Atomic(0)
      private let most = Atomic(0)

      /// The number of fetches so far.
      var count: Int { calls.load(ordering: .relaxed) }
      /// The maximum number of concurrent fetches.
      var mostAtOnce: Int { most.load(ordering: .relaxed) }

      func fetch() async throws -> Int {
        let number = calls.add(1, ordering: .relaxed).newValue
        let atOnce = now.add(1, ordering: .relaxed).newValue
        most.max(atOnce, ordering: .relaxed)
        defer { now.subtract(1, ordering: .relaxed) }
        await hop()
        try Task.checkCancellation()
        return number
      }
    }

    private static func cancelling() -> CachePolicy {
      var policy = CachePolicy()
      policy.whenUnobserved = .cancel
      return policy
    }

    @Test(
      .guarantee(.requestsShareOneFetch),
      arguments: [CachePolicy.UnobservedFetch.finishAndStore, .cancel]
    )
    func `two requests share a fetch or find its value`(
      policy: CachePolicy.UnobservedFetch
    ) throws {
      try forEveryInterleaving {
        let origin = Origin()
        var settings = CachePolicy()
        settings.whenUnobserved = policy
        let cache = Multiplexer(policy: settings) { try await origin.fetch() }
        let first = Task { try await cache.request() }
        let second = Task { try await cache.request() }
        guard try await first.value == 1, try await second.value == 1, origin.count == 1 else {
          throw Wrong(what: "\(origin.count) fetches")
        }
      }
    }

    @Test(.guarantee(.cancelledCallersReturnImmediately))
    func `a cancelled request never costs another one its value`() throws {
      try forEveryInterleaving {
        let origin = Origin()
        let cache = Multiplexer { try await origin.fetch() }
        let doomed = Task { try await cache.request() }
        let other = Task { try await cache.request() }
        let canceller = Task { doomed.cancel() }
        guard try await other.value == 1 else { throw Wrong(what: "another value") }
        await canceller.value
        if case .failure(let error) = await doomed.result, !(error is CancellationError) {
          throw error
        }
        guard origin.count == 1 else { throw Wrong(what: "\(origin.count) fetches") }
      }
    }

    @Test(.guarantee(.lastCallerFollowsThePolicy))
    func `a fetch cancelled by its last caller is never shown to the next one`() throws {
      try forEveryInterleaving {
        let origin = Origin()
        let cache = Multiplexer(policy: Self.cancelling()) { try await origin.fetch() }
        let doomed = Task { try await cache.request() }
        let other = Task { try await cache.request() }
        let canceller = Task { doomed.cancel() }
        let value = try await other.value
        await canceller.value
        _ = await doomed.result
        guard cache.cachedValue == value, cache.statistics.failures == 0 else {
          throw Wrong(what: "\(value) was handed out and \(cache.cachedValue ?? 0) was kept")
        }
      }
    }

    @Test(.guarantee(.clearDetachesTheFetch))
    func `no caller is lost and nothing old is kept when a fetch is detached`() throws {
      try forEveryInterleaving {
        let origin = Origin()
        let cache = Multiplexer { try await origin.fetch() }
        let early = Task { try await cache.request() }
        let clearing = Task {
          try await cache.clear()
          let began = origin.count
          let value = try await cache.request()
          guard value > began else { throw Wrong(what: "\(value) is from before") }
          return value
        }
        _ = try await early.value
        let late = try await clearing.value
        guard cache.cachedValue == late else {
          throw Wrong(what: "\(cache.cachedValue ?? 0) was kept, and \(late) handed out")
        }
      }
    }

    @Test(.guarantee(.refreshCausesOneMoreFetch))
    func `a refresh is never satisfied by a fetch that began before it`() throws {
      try forEveryInterleaving(deviations: 5) {
        let origin = Origin()
        let cache = Multiplexer { try await origin.fetch() }
        let early = Task { try await cache.request() }
        let refreshing = Task {
          let refreshed = cache.refresh()
          let began = origin.count
          let value = try await refreshed.request()
          guard value > began else { throw Wrong(what: "\(value) of \(began) is from before") }
        }
        let plain = Task { try await cache.request() }
        _ = try await early.value
        _ = try await plain.value
        try await refreshing.value
        guard origin.count <= 2, origin.mostAtOnce == 1 else {
          throw Wrong(what: "\(origin.count) fetches, \(origin.mostAtOnce) at once")
        }
      }
    }

    @Test(.guarantee(.storedValuesWinOverFetches))
    func `a stored value wins over the fetch, whichever ends first`() throws {
      try forEveryInterleaving {
        let origin = Origin()
        let cache = Multiplexer { try await origin.fetch() }
        let caller = Task { try await cache.request() }
        let storing = Task { cache.store(100) }
        let value = try await caller.value
        await storing.value
        await hop()
        await hop()
        guard [1, 100].contains(value), cache.cachedValue == 100 else {
          throw Wrong(what: "\(value) was handed out and \(cache.cachedValue ?? 0) was kept")
        }
      }
    }

    @Test(.guarantee(.ownKeyRequestsThrow))
    func `two fetches that wait for each other do not deadlock`() throws {
      try forEveryInterleaving(deviations: 5) {
        let own = MapReference()
        let map = MultiplexerMap<Int, Int>(id: "m") { key in
          await hop()
          do {
            return try await own.request(1 - key)
          } catch MultiplexerError.recursiveRequest(let chain) {
            guard chain == ["m[\(key)]", "m[\(1 - key)]", "m[\(key)]"] else {
              throw Wrong(what: "\(chain)")
            }
            return 42
          }
        }
        await own.adopt(map)
        let first = Task { try await map.request(0) }
        let second = Task { try await map.request(1) }
        guard try await first.value == 42, try await second.value == 42 else {
          throw Wrong(what: "another value")
        }
      }
    }

    @Test func `a wait that was cancelled closes no circle later`() throws {
      try forEveryInterleaving(deviations: 4) {
        let own = MapReference()
        let hasLeft = Gate()
        let map = MultiplexerMap<Int, Int>(id: "m") { key in
          guard key == 0 else {
            try await hasLeft.wait()
            return try await own.request(0) + 1
          }
          let impatient = Task { try await own.request(1) }
          await hop()
          impatient.cancel()
          _ = await impatient.result
          hasLeft.open()
          // The other fetch waits for this one, which no longer waits for it.
          await hop()
          await hop()
          return 7
        }
        await own.adopt(map)
        let first = Task { try await map.request(0) }
        let second = Task { try await map.request(1) }
        let values = (try await first.value, try await second.value)
        guard values == (7, 8) else { throw Wrong(what: "\(values)") }
      }
    }

    @Test func `a fetch that requests what is queued behind it does not deadlock`() throws {
      try forEveryInterleaving(deviations: 4) {
        let own = MapReference()
        let fetches = Origin()
        let map = MultiplexerMap<Int, Int>(id: "m") { key in
          guard key == 1 else { return try await own.request(1) }
          guard try await fetches.fetch() == 1 else { return 7 }
          return try await own.refresh(0)
        }
        await own.adopt(map)
        let caller = Task { try await map.request(0) }
        switch await caller.result {
        case .success(let value):
          throw Wrong(what: "\(value)")
        case .failure(MultiplexerError.recursiveRequest(let chain)):
          guard chain == ["m[1]", "m[0]", "m[1]"] else { throw Wrong(what: "\(chain)") }
        case .failure(let error):
          throw error
        }
        // The queued one requests again, and gets an answer.
        guard try await map.request(0) == 7 else { throw Wrong(what: "another value") }
      }
    }

    @Test(.guarantee(.subscribersCauseNoFetch))
    func `the last state that a subscriber receives is the current one`() throws {
      try forEveryInterleaving(deviations: 4) {
        let origin = Origin()
        let cache = Multiplexer(policy: Self.cancelling()) { try await origin.fetch() }
        let stream = cache.subscription()
        let doomed = Task { try await cache.request() }
        let canceller = Task { doomed.cancel() }
        let clearing = Task { try await cache.clear() }
        await canceller.value
        try await clearing.value
        _ = await doomed.result
        await hop()
        var iterator = stream.makeAsyncIterator()
        guard let state = await iterator.next() else { throw Wrong(what: "the stream has ended") }
        guard !state.isLoading, state.value == cache.cachedValue else {
          throw Wrong(what: "\(state), but \(String(describing: cache.cachedValue)) is kept")
        }
      }
    }

    @Test(.guarantee(.unobservedFetchesDoNotBegin))
    func `nothing is fetched or stored once all callers of a refresh and before it have left`()
      throws
    {
      try forEveryInterleaving(deviations: 4) {
        let origin = Origin()
        let cache = Multiplexer(policy: Self.cancelling()) { try await origin.fetch() }
        let early = Task { try await cache.request() }
        let late = Task { try await cache.refresh().request() }
        let canceller = Task {
          early.cancel()
          late.cancel()
        }
        await canceller.value
        let results = [await early.result, await late.result]
        let began = cache.statistics.fetches
        guard results.allSatisfy({ (try? $0.get()) == nil }) else { return }
        for _ in 0..<8 { await hop() }
        guard cache.cachedValue == nil, cache.statistics.fetches == began else {
          throw Wrong(what: "\(cache.statistics.fetches) fetches, \(cache.cachedValue ?? 0) stored")
        }
      }
    }

    @Test(.guarantee(.fetchesCountsCalls))
    func `the statistics count the fetches whose closures are called`() throws {
      try forEveryInterleaving {
        let origin = Origin()
        let cache = Multiplexer(policy: Self.cancelling()) { try await origin.fetch() }
        let doomed = Task { try await cache.request() }
        let canceller = Task { doomed.cancel() }
        await canceller.value
        _ = await doomed.result
        let counted = cache.statistics.fetches
        // It is about to be called, if it was not yet.
        for _ in 0..<8 { await hop() }
        let statistics = cache.statistics
        guard statistics.fetches == counted, origin.count == counted, statistics.misses == 1 else {
          throw Wrong(what: "\(statistics), but \(origin.count) calls")
        }
      }
    }

    @Test(.guarantee(.fetchTimeoutIsAFailure))
    func `a fetch with a timeout ends once, by its result or by the time`() throws {
      try forEveryInterleaving(deviations: 4) {
        let clock = ManualClock()
        var policy = CachePolicy()
        policy.fetchTimeout = .seconds(1)
        let origin = Origin()
        let cache = Multiplexer(policy: policy, clock: clock) { try await origin.fetch() }
        let caller = Task { try await cache.request() }
        let time = Task { clock.advance(by: .seconds(1)) }
        await time.value
        switch await caller.result {
        case .success(let value):
          guard cache.cachedValue == value else { throw Wrong(what: "nothing was kept") }
        case .failure(MultiplexerError.fetchTimedOut):
          guard cache.cachedValue == nil else { throw Wrong(what: "a late result was kept") }
        case .failure(let error):
          throw error
        }
      }
    }
  }
}

/// A reference from a fetch to its map.
private actor MapReference {
  private var map: MultiplexerMap<Int, Int>?

  func adopt(_ map: MultiplexerMap<Int, Int>) {
    self.map = map
  }

  nonisolated func request(_ key: Int) async throws -> Int {
    guard let map = await map else { return key }
    return try await map.request(key)
  }

  /// Requests a value that is fetched from now on.
  nonisolated func refresh(_ key: Int) async throws -> Int {
    guard let map = await map else { return key }
    return try await map.refresh(key).request(key)
  }
}
