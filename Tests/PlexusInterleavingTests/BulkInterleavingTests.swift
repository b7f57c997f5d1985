import Plexus
import PlexusTesting
import Synchronization
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `Requests of several keys, in every order` {
    /// A fetch of several jobs that returns the number of its call for each key.
    private final class Origin: Sendable {
      private let calls = Atomic(0)

      /// The number of fetches so far.
      var count: Int { calls.load(ordering: .relaxed) }

      func fetch(_ keys: [Int]) async throws -> [Int: Int] {
        let number = calls.add(1, ordering: .relaxed).newValue
        await hop()
        try Task.checkCancellation()
        return Dictionary(uniqueKeysWithValues: keys.map { ($0, number) })
      }
    }

    private static func map(
      _ origin: Origin,
      whenUnobserved: CachePolicy.UnobservedFetch = .finishAndStore,
      capacity: CacheCapacity<Int> = .unbounded
    ) -> MultiplexerMap<Int, Int> {
      var policy = CachePolicy()
      policy.whenUnobserved = whenUnobserved
      return MultiplexerMap<Int, Int>.bulk(policy: policy, capacity: capacity) { keys in
        try await origin.fetch(keys)
      }
    }

    private static func values(_ results: [Int: Result<Int, any Error>]) throws -> [Int: Int] {
      try results.mapValues { try $0.get() }
    }

    @Test(
      .guarantee(.requestsShareOneFetch),
      arguments: [CachePolicy.UnobservedFetch.finishAndStore, .cancel]
    )
    func `two requests that overlap fetch each key once`(
      policy: CachePolicy.UnobservedFetch
    ) throws {
      try forEveryInterleaving(deviations: 3) {
        let origin = Origin()
        let map = Self.map(origin, whenUnobserved: policy)
        let first = Task { await map.request([1, 2]) }
        let second = Task { await map.request([2, 3]) }
        let single = Task { try await map.request(2) }
        let (left, right) = (
          try Self.values(await first.value), try Self.values(await second.value)
        )
        let value = try await single.value
        guard left.count == 2, right.count == 2, left[2] == right[2], value == left[2] else {
          throw Wrong(what: "\(left), \(right) and \(value)")
        }
        guard origin.count <= 3, map.statistics.fetches == origin.count else {
          throw Wrong(what: "\(origin.count) fetches")
        }
      }
    }

    @Test(
      .guarantee(.droppedKeysDoNotFillABatch),
      arguments: [CachePolicy.UnobservedFetch.finishAndStore, .cancel]
    )
    func `a window gives every remaining caller its value, no matter who leaves and when it ends`(
      policy: CachePolicy.UnobservedFetch
    ) throws {
      try forEveryInterleaving(deviations: Effort.deviations(2)) {
        let clock = ManualClock()
        let batches = Mutex<[[Int]]>([])
        let map = MultiplexerMap<Int, Int>.bulk(
          policy: CachePolicy(whenUnobserved: policy),
          clock: clock,
          window: .seconds(1),
          maximumBatchSize: 2
        ) { keys in
          batches.withLock { $0.append(keys) }
          await hop()
          try Task.checkCancellation()
          return Dictionary(uniqueKeysWithValues: keys.map { ($0, 10 * $0) })
        }
        let doomed = Task { try await map.request(1) }
        let callers = [1, 2, 3].map { key in Task { try await map.request(key) } }
        let leaving = Task { doomed.cancel() }
        let passing = Task {
          while !Task.isCancelled {
            clock.advance(by: .seconds(1))
            await hop()
          }
        }
        for (index, caller) in callers.enumerated() {
          let value = try await caller.value
          guard value == 10 * (index + 1) else { throw Wrong(what: "\(value)") }
        }
        await leaving.value
        _ = await doomed.result
        passing.cancel()
        await passing.value
        let fetched = batches.withLock { $0 }
        guard fetched.allSatisfy({ (1...2).contains($0.count) }) else {
          throw Wrong(what: "batches of \(fetched)")
        }
        // A fetch that its last caller has left is not the answer to the next one.
        let keys = fetched.flatMap { $0 }.sorted()
        guard keys == [1, 2, 3] || policy == .cancel && keys == [1, 1, 2, 3] else {
          throw Wrong(what: "\(fetched) were fetched")
        }
        guard map.count == 3 else { throw Wrong(what: "\(map.count) values are kept") }
      }
    }

    @Test(arguments: [CachePolicy.UnobservedFetch.finishAndStore, .cancel])
    func `a caller that leaves costs no other caller its value`(
      policy: CachePolicy.UnobservedFetch
    ) throws {
      try forEveryInterleaving(deviations: 4) {
        let origin = Origin()
        let map = Self.map(origin, whenUnobserved: policy)
        let doomed = Task { await map.request([1, 2]) }
        let other = Task { try await map.request(2) }
        let canceller = Task { doomed.cancel() }
        let value = try await other.value
        await canceller.value
        for result in await doomed.value.values {
          if case .failure(let error) = result, !(error is CancellationError) { throw error }
        }
        guard map.cachedValue(2) == value, map.statistics.failures == 0 else {
          throw Wrong(what: "\(value), but \(map.cachedValue(2) ?? 0) was kept")
        }
      }
    }

    @Test func `no caller is lost, and cleared values are not kept`() throws {
      try forEveryInterleaving(deviations: 4) {
        let origin = Origin()
        let map = Self.map(origin)
        let early = Task { await map.request([1, 2]) }
        let clearing = Task {
          try await map.clear(1)
          let began = origin.count
          let value = try await map.request(1)
          guard value > began else { throw Wrong(what: "\(value) is from before") }
          return value
        }
        _ = try Self.values(await early.value)
        let late = try await clearing.value
        guard let kept = map.cachedValue(1), kept >= late, map.cachedValue(2) != nil else {
          throw Wrong(what: "\(map.cachedValue(1) ?? 0) was kept, and \(late) handed out")
        }
      }
    }

    @Test func `a stored value wins for its key, and does not affect the other keys`() throws {
      try forEveryInterleaving(deviations: 4) {
        let origin = Origin()
        let map = Self.map(origin, whenUnobserved: .cancel)
        let caller = Task { await map.request([1, 2]) }
        let storing = Task { map.store(100, for: 1) }
        let canceller = Task { await map.request([2, 3]) }
        canceller.cancel()
        let values = try Self.values(await caller.value)
        await storing.value
        _ = await canceller.value
        await hop()
        guard map.cachedValue(1) == 100, let second = values[2], map.cachedValue(2) == second,
          values[1] == 100 || values[1] == second
        else { throw Wrong(what: "\(values), and \(map.cachedValue(1) ?? 0) was kept") }
      }
    }

    @Test func `a limit is kept whichever of two fetches ends first`() throws {
      try forEveryInterleaving(deviations: 4) {
        let origin = Origin()
        let map = Self.map(origin, capacity: .count(1))
        let first = Task { await map.request([1, 2]) }
        let second = Task { await map.request([2, 3]) }
        guard try Self.values(await first.value).count == 2,
          try Self.values(await second.value).count == 2
        else { throw Wrong(what: "a value is missing") }
        await hop()
        let kept = (1...3).count { map.cachedValue($0) != nil }
        guard kept == 1 else { throw Wrong(what: "\(kept) values are kept") }
      }
    }

    @Test func `two fetches of several keys that wait for each other do not deadlock`()
      throws
    {
      try forEveryInterleaving(deviations: 3) {
        let own = MapReference()
        let map = MultiplexerMap<Int, Int>.bulk(id: "m") { keys in
          await hop()
          let others = await own.request(keys.map { ($0 + 2) % 4 })
          return Dictionary(
            uniqueKeysWithValues: keys.map { key in
              guard case .failure(MultiplexerError.recursiveRequest)? = others[(key + 2) % 4] else {
                return (key, 1)
              }
              return (key, 42)
            }
          )
        }
        await own.adopt(map)
        let first = Task { await map.request([0, 1]) }
        let second = Task { await map.request([2, 3]) }
        let values = try Self.values(await first.value).merging(Self.values(await second.value)) {
          left,
          _ in left
        }
        guard values.count == 4, values.values.contains(42) else { throw Wrong(what: "\(values)") }
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

  nonisolated func request(_ keys: [Int]) async -> [Int: Result<Int, any Error>] {
    await map?.request(keys) ?? [:]
  }
}
