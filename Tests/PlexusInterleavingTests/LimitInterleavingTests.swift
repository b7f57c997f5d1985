import Plexus
import PlexusTesting
import Synchronization
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `Fetches with a limit, in every order` {
    /// The number of fetches that run, apart from the ones that wait for others.
    private final class Load: Sendable {
      private let state = Mutex((running: 0, highest: 0))

      var highest: Int { state.withLock { $0.highest } }

      func begin() {
        state.withLock { state in
          state.running += 1
          state.highest = max(state.highest, state.running)
        }
      }

      func end() { state.withLock { $0.running -= 1 } }
    }

    private final class Own: Sendable {
      private let map = Mutex<MultiplexerMap<Int, Int>?>(nil)

      func set(_ new: MultiplexerMap<Int, Int>?) { map.withLock { $0 = new } }

      func request(_ keys: [Int]) async -> Int {
        guard let map = map.withLock({ $0 }) else { return 0 }
        return await map.request(keys).values.reduce(0) { $0 + ((try? $1.get()) ?? 0) }
      }
    }

    private static func policy(
      _ maximum: Int,
      _ change: (inout CachePolicy) -> Void = { _ in }
    ) -> CachePolicy {
      var policy = CachePolicy()
      policy.maximumConcurrentFetches = maximum
      change(&policy)
      return policy
    }

    /// Creates a map whose fetches request others, all of them at once, and count the keys that they need.
    private static func makeMap(
      _ maximum: Int,
      _ own: Own,
      _ load: Load,
      needs: [Int: [Int]]
    ) -> MultiplexerMap<Int, Int> {
      let map = MultiplexerMap<Int, Int>(policy: policy(maximum)) { key in
        load.begin()
        await hop()
        load.end()
        guard let others = needs[key] else { return 1 }
        return await own.request(others) + 1
      }
      own.set(map)
      return map
    }

    @Test(.guarantee(.nestedFetchesShareAPlace), arguments: [1, 2])
    func `requests inside limited fetches end, and no more fetches run than the limit`(
      maximum: Int
    ) throws {
      try forEveryInterleaving(deviations: 3) {
        let (own, load) = (Own(), Load())
        let needs = [1: [2, 3], 2: [3, 4]]
        let map = Self.makeMap(maximum, own, load, needs: needs)
        let first = Task { try await map.request(1) }
        let second = Task { try await map.request(3) }
        let values = (try await first.value, try await second.value)
        await hop()
        own.set(nil)
        guard values == (5, 1) else { throw Wrong(what: "\(values)") }
        guard load.highest <= maximum else { throw Wrong(what: "\(load.highest) at once") }
        let statistics = map.statistics
        guard statistics.running == 0, statistics.waiting == 0, statistics.fetches == 4 else {
          throw Wrong(what: "\(statistics)")
        }
      }
    }

    @Test(.guarantee(.nestedFetchesShareAPlace))
    func `two limited fetches that need the same ones do not block each other`() throws {
      try forEveryInterleaving(deviations: 3) {
        let (own, load) = (Own(), Load())
        let map = Self.makeMap(2, own, load, needs: [1: [3, 4], 2: [4, 3]])
        let callers = [1, 2].map { key in Task { try await map.request(key) } }
        for caller in callers {
          let value = try await caller.value
          guard value == 3 else { throw Wrong(what: "\(value)") }
        }
        await hop()
        own.set(nil)
        guard load.highest <= 2, map.statistics.running == 0 else {
          throw Wrong(what: "\(load.highest) at once, \(map.statistics.running) run")
        }
      }
    }

    @Test func `a refresh during the wait is served by the fetch that waits, with a cacher`() throws
    {
      try forEveryInterleaving(deviations: 4) {
        let (gate, fetches) = (Gate(), Journal())
        let map = MultiplexerMap<Int, Int>(policy: Self.policy(1), cacher: EmptyCacher()) { key in
          fetches.append("\(key)")
          if key == 1 { try await gate.wait() }
          return key
        }
        let first = Task { try await map.request(1) }
        await gate.arrivals(1)
        let second = Task { try await map.request(2) }
        while map.statistics.waiting == 0 { await hop() }
        let third = Task { try await map.refresh(2).request(2) }
        while map.statistics.joins == 0 { await hop() }
        gate.open()
        _ = (try await first.value, try await second.value, try await third.value)
        guard fetches.text == "12" else { throw Wrong(what: fetches.text) }
      }
    }

    @Test(arguments: [false, true])
    func `the last caller of a fetch that waits for its next attempt takes it along`(
      isBulk: Bool
    )
      throws
    {
      try forEveryInterleaving(deviations: 3) {
        let (clock, gate, fetches) = (ManualClock(), Gate(), Journal())
        let policy = Self.policy(1) {
          $0.retry = .exponential(attempts: 2, base: .seconds(1), cap: .seconds(1), jitter: 0)
        }
        let fetch: @concurrent @Sendable (Int) async throws -> Int = { key in
          fetches.append("\(key)")
          if key == 1 { throw Wrong(what: "It fails") }
          try await gate.wait()
          return key
        }
        let map =
          isBulk
          ? MultiplexerMap<Int, Int>.bulk(policy: policy, clock: clock) { keys in
            var values: [Int: Int] = [:]
            for key in keys { values[key] = try await fetch(key) }
            return values
          } : MultiplexerMap<Int, Int>(policy: policy, clock: clock, onKeyFetch: fetch)
        let first = Task { await map.request([1]) }
        await clock.sleepers(1)
        let second = Task { try await map.request(2) }
        await gate.arrivals(1)
        clock.advance(by: .seconds(1))
        while map.statistics.waiting == 0 { await hop() }
        first.cancel()
        _ = await first.value
        guard map.statistics.waiting == 0 else { throw Wrong(what: "It still waits") }
        gate.open()
        let value = try await second.value
        await hop()
        guard value == 2, fetches.text == "12" else { throw Wrong(what: fetches.text) }
      }
    }

    @Test(.guarantee(.fetchesStayWithinTheirLimit))
    func `a prefetch that is joined and left at any time makes room for a caller`() throws {
      try forEveryInterleaving(deviations: 4) {
        let gate = Gate()
        let map = MultiplexerMap<Int, Int>(policy: Self.policy(1) { $0.maximumWaitingFetches = 1 })
        {
          key in
          if key == 1 { try await gate.wait() }
          return key
        }
        let first = Task { try await map.request(1) }
        await gate.arrivals(1)
        map.prefetch([2])
        let joining = Task { try await map.request(2) }
        let leaving = Task { joining.cancel() }
        await leaving.value
        _ = await joining.result
        let value = Task { try await map.request(3) }
        while map.statistics.waiting == 0 { await hop() }
        gate.open()
        let values = (try await first.value, try await value.value)
        guard values == (1, 3) else { throw Wrong(what: "\(values)") }
      }
    }
  }
}

/// A cacher that keeps nothing.
private final class EmptyCacher: Cacher {
  func entry(forKey key: String) async throws -> CacheEntry<Int>? { nil }

  func store(_ entries: [String: CacheEntry<Int>]) async throws {}

  func removeEntries(forKeys keys: Set<String>) async throws {}

  func removeAllEntries() async throws {}

  func removeEntries(withPrefix prefix: String) async throws {}
}
