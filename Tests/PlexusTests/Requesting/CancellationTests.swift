import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A cancelled caller` {
  private func policy(_ whenUnobserved: CachePolicy.UnobservedFetch) -> CachePolicy {
    var policy = CachePolicy()
    policy.whenUnobserved = whenUnobserved
    return policy
  }

  @Test(
    .guarantee(.cancelledCallersReturnImmediately),
    arguments: CacheKind.allCases,
    [CachePolicy.UnobservedFetch.finishAndStore, .cancel]
  )
  func `a cancelled caller leaves at once, without affecting the fetch and the others`(
    kind: CacheKind,
    whenUnobserved: CachePolicy.UnobservedFetch
  ) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .success(2)], gate: gate)
    let cache = kind.make(policy: policy(whenUnobserved)) { try await origin.fetch() }
    let starter = begin { try await cache.request() }
    let joiner = begin { try await cache.request() }
    let third = begin { try await cache.request() }
    await gate.arrivals(1)

    starter.cancel()
    await #expect(throws: CancellationError.self) { try await starter.value }
    third.cancel()
    await #expect(throws: CancellationError.self) { try await third.value }
    #expect(gate.waiterCount == 1)
    gate.open()
    #expect(try await joiner.value == 1)
    #expect(try await cache.request() == 1)
    #expect(cache.statistics.counts == CacheStatistics(hits: 1, misses: 1, joins: 2, fetches: 1))
  }

  @Test(
    .guarantee(.cancelledCallersReturnImmediately),
    arguments: CacheKind.allCases,
    [CachePolicy.UnobservedFetch.finishAndStore, .cancel]
  )
  func `a caller that is cancelled before the request gets an error and starts no fetch`(
    kind: CacheKind,
    whenUnobserved: CachePolicy.UnobservedFetch
  ) async throws {
    let tally = Tally()
    let cache = kind.make(policy: policy(whenUnobserved)) { tally.increment() }
    let caller = begin {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await cache.request()
    }
    await #expect(throws: CancellationError.self) { try await caller.value }
    #expect(tally.value == 0)
    #expect(cache.statistics.counts == CacheStatistics(misses: 1))
    #expect(try await cache.request() == 1)
  }

  @Test(arguments: CacheKind.allCases)
  func `a caller that is cancelled before the request gets an available value`(
    kind: CacheKind
  ) async throws {
    let clock = ManualClock()
    var policy = CachePolicy()
    policy.staleWhileRevalidate = .seconds(60)
    let cache = kind.make(policy: policy, clock: clock) { 1 }
    _ = try await cache.request()
    let fresh = begin {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await cache.request()
    }
    #expect(try await fresh.value == 1)
    clock.advance(by: policy.timeToLive)
    let stale = begin {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await cache.request()
    }
    #expect(try await stale.value == 1)
    #expect(cache.statistics.fetches == 1, "A cancelled caller begins no fetch")
  }

  @Test(arguments: CacheKind.allCases)
  func `a caller that is cancelled before the request does not join a fetch either`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1)], gate: gate)
    let cache = kind.make { try await origin.fetch() }
    let other = begin { try await cache.request() }
    let caller = begin {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await cache.request()
    }
    await #expect(throws: CancellationError.self) { try await caller.value }
    gate.open()
    #expect(try await other.value == 1)
    #expect(cache.statistics.joins == 0)
  }

  @Test(.guarantee(.lastCallerFollowsThePolicy), arguments: CacheKind.allCases)
  func `a cancelled last caller of a key leaves a fetch that ends and is stored`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .success(2)], gate: gate)
    let cache = kind.make(policy: policy(.finishAndStore)) { try await origin.fetch() }
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    let later = begin { try await cache.request() }
    later.cancel()
    await #expect(throws: CancellationError.self) { try await later.value }
    let states = Recorder(cache.subscribe())
    gate.open()
    _ = await states.first(2)
    #expect(try await cache.request() == 1)
    #expect(origin.count == 1)
  }

  @Test(.guarantee(.lastCallerFollowsThePolicy), arguments: CacheKind.allCases)
  func `a cancelled last caller takes the fetch with it if the policy says so`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let ended = RecordedChannel<String>()
    let cache = kind.make(policy: policy(.cancel)) {
      do {
        try await gate.wait()
        return 1
      } catch {
        ended.send("\(type(of: error)), cancelled: \(Task.isCancelled)")
        throw error
      }
    }
    let states = Recorder(cache.subscribe())
    let first = begin { try await cache.request() }
    let second = begin { try await cache.request() }
    await gate.arrivals(1)
    first.cancel()
    #expect(gate.waiterCount == 1)
    second.cancel()
    #expect(gate.waiterCount == 0, "The fetch was cancelled when cancel() returned")
    #expect(await ended.recorder.first(1) == ["CancellationError, cancelled: true"])
    #expect(await states.first(3).map(\.name) == ["unknown", "loading", "unknown"])

    let third = begin { try await cache.request() }
    gate.open()
    #expect(try await third.value == 1)
    #expect(cache.statistics.counts == CacheStatistics(misses: 2, joins: 1, fetches: 2))
  }

  @Test(arguments: CacheKind.allCases)
  func `a cancelled caller takes the fetch with it also when cancelled before it suspends`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1)], gate: gate)
    let cache = kind.make(policy: policy(.cancel)) { try await origin.fetch() }
    for _ in 0..<100 {
      let caller = Task { try await cache.request() }
      caller.cancel()
      await #expect(throws: CancellationError.self) { try await caller.value }
    }
    gate.open()
    #expect(try await cache.request() == 1)
    #expect(cache.statistics.failures == 0)
  }

  @Test(.guarantee(.lastCallerFollowsThePolicy), arguments: CacheKind.allCases)
  func `a cancelled caller costs no value to one that joins while the cancelled fetch unwinds`(
    kind: CacheKind
  ) async throws {
    let unwinding = Gate()
    let gate = Gate()
    let tally = Tally()
    let cache = kind.make(policy: policy(.cancel)) {
      let number = tally.increment()
      if number == 1 {
        await waitUnmoved(unwinding)
      } else {
        try await gate.wait()
      }
      return number
    }
    let doomed = begin { try await cache.request() }
    await unwinding.arrivals(1)
    doomed.cancel()
    await #expect(throws: CancellationError.self) { try await doomed.value }

    let other = begin { try await cache.request() }
    await gate.arrivals(1)
    let states = Recorder(cache.subscribe())
    unwinding.open()
    gate.open()
    #expect(try await other.value == 2)
    #expect(cache.cachedValue == 2, "The late result of a cancelled fetch is not stored")
    #expect(await states.first(2).map(\.name) == ["loading", "loaded 2"])
  }

  @Test(arguments: CacheKind.allCases)
  func `a cancelled caller leaves a value that was being renewed, and its age, as they were`(
    kind: CacheKind
  ) async throws {
    let clock = ManualClock()
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .success(2), .success(3)], gate: gate)
    gate.open()
    let cache = kind.make(policy: policy(.cancel), clock: clock) { try await origin.fetch() }
    _ = try await cache.request()
    gate.close()
    let refreshed = cache.refresh()
    let caller = begin { try await refreshed.request() }
    await gate.arrivals(2)
    #expect(try await cache.request() == 1, "While the refresh runs the old value serves")
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
    #expect(cache.cachedValue == 1)
    let next = begin { try await cache.request() }
    await gate.arrivals(3)
    gate.open()
    #expect(try await next.value == 3, "The refresh is still to be served")
  }

  @Test(arguments: CacheKind.allCases)
  func `a cancelled caller does not take a fetch with it that runs for its own sake`(
    kind: CacheKind
  ) async throws {
    let clock = ManualClock()
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .success(2)], gate: gate)
    gate.open()
    var policy = policy(.cancel)
    policy.staleWhileRevalidate = .seconds(60)
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    _ = try await cache.request()
    gate.close()
    clock.advance(by: policy.timeToLive)
    _ = try await cache.request()
    await gate.arrivals(2)
    clock.advance(by: .seconds(60))
    let joiner = begin { try await cache.request() }
    joiner.cancel()
    await #expect(throws: CancellationError.self) { try await joiner.value }
    #expect(gate.waiterCount == 1)
    let states = Recorder(cache.subscribe())
    gate.open()
    #expect(await states.first(2).last?.value == 2)
  }

  @Test(.guarantee(.lastCallerFollowsThePolicy), arguments: CacheKind.allCases)
  func `a cancelled caller does not take a fetch with it that runs for a refresh`(
    kind: CacheKind
  ) async throws {
    let gates = [Gate(), Gate()]
    let tally = Tally()
    let cache = kind.make(policy: policy(.cancel)) {
      let number = tally.increment()
      try await gates[number - 1].wait()
      return number
    }
    let first = begin { try await cache.request() }
    await gates[0].arrivals(1)
    let refreshed = cache.refresh()
    gates[0].open()
    #expect(try await first.value == 1)
    await gates[1].arrivals(1)
    let joiner = begin { try await refreshed.request() }
    joiner.cancel()
    await #expect(throws: CancellationError.self) { try await joiner.value }
    #expect(gates[1].waiterCount == 1)
    gates[1].open()
    #expect(try await refreshed.request() == 2)
  }

  @Test(
    .guarantee(.lastCallerFollowsThePolicy),
    arguments: CacheKind.allCases,
    [CachePolicy.UnobservedFetch.finishAndStore, .cancel]
  )
  func `a CancellationError of the fetch of a key is a failure like any other`(
    kind: CacheKind,
    whenUnobserved: CachePolicy.UnobservedFetch
  ) async throws {
    let clock = ManualClock()
    var policy = policy(whenUnobserved)
    policy.failureTimeToLive = .seconds(1_000)
    policy.retry = .exponential(attempts: 2, base: .seconds(1), cap: .seconds(1), jitter: 0)
    let origin = ScriptedFetcher<Int>([
      .failure(CancellationError()), .failure(CancellationError()), .success(3),
    ])
    let cache = kind.make(policy: policy, clock: clock) { try await origin.fetch() }
    let states = Recorder(cache.subscribe())
    let caller = begin { try await cache.request() }
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    await #expect(throws: CancellationError.self) { try await caller.value }
    #expect(
      await states.first(3).map(\.name) == ["unknown", "loading", "failed CancellationError"]
    )
    #expect(cache.statistics.counts == CacheStatistics(misses: 1, fetches: 1, failures: 1))
    await #expect(throws: CancellationError.self, "It is remembered") { try await cache.request() }
    #expect(origin.count == 2)
    clock.advance(by: .seconds(1_000))
    #expect(try await cache.request() == 3)
  }

  @Test(arguments: CacheKind.allCases)
  func `a caller may be cancelled by the very fetch that it waits for`(kind: CacheKind) async throws
  {
    let callers = RecordedChannel<Task<Int, any Error>>()
    let tally = Tally()
    let cache = kind.make(policy: policy(.cancel)) {
      let number = tally.increment()
      if number == 1 {
        await callers.recorder.first(1).first?.cancel()
        try Task.checkCancellation()
      }
      return number
    }
    let caller = begin { try await cache.request() }
    callers.send(caller)
    await #expect(throws: CancellationError.self) { try await caller.value }
    #expect(try await cache.request() == 2)
    #expect(cache.statistics.failures == 0)
  }
}
