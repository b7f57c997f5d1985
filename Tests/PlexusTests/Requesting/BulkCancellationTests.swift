import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A cancelled caller of several keys` {
  let origin = BulkOrigin()

  private func policy(_ whenUnobserved: CachePolicy.UnobservedFetch) -> CachePolicy {
    var policy = CachePolicy()
    policy.whenUnobserved = whenUnobserved
    return policy
  }

  @Test(arguments: [CachePolicy.UnobservedFetch.finishAndStore, .cancel])
  func `a cancelled caller of several keys leaves all at once, without affecting the others`(
    whenUnobserved: CachePolicy.UnobservedFetch
  ) async throws {
    let map = origin.makeMap(policy: policy(whenUnobserved))
    map.store(7, for: 9)
    let doomed = begin { await map.request([1, 2, 9]) }
    await origin.gate.arrivals(1)
    let other = begin { await map.request([2, 3]) }
    let single = begin { try await map.request(2) }
    await origin.gate.arrivals(2)
    doomed.cancel()
    #expect(
      outcomes(try await doomed.value) == [1: "CancellationError", 2: "CancellationError", 9: "7"]
    )
    #expect(origin.gate.waiterCount == 2, "The fetch goes on")
    origin.gate.open()
    #expect(outcomes(try await other.value) == [2: "102", 3: "203"])
    #expect(try await single.value == 102)
    #expect(map.statistics.failures == 0)
  }

  @Test(arguments: [CachePolicy.UnobservedFetch.finishAndStore, .cancel])
  func `a caller cancelled before a request of keys gets available values and starts no fetch`(
    whenUnobserved: CachePolicy.UnobservedFetch
  ) async throws {
    let map = origin.makeMap(policy: policy(whenUnobserved))
    map.store(7, for: 9)
    let other = begin { try await map.request(1) }
    await origin.gate.arrivals(1)
    let caller = begin {
      withUnsafeCurrentTask { $0?.cancel() }
      return await map.request([1, 2, 9])
    }
    #expect(
      outcomes(try await caller.value) == [1: "CancellationError", 2: "CancellationError", 9: "7"]
    )
    origin.gate.open()
    #expect(try await other.value == 101)
    #expect(origin.calls == [[1]])
    #expect(map.statistics.counts == CacheStatistics(hits: 1, misses: 3, fetches: 1))
  }

  @Test func `a cancelled caller of very many keys leaves them at once, and gets every error`()
    async throws
  {
    let map = origin.makeMap(policy: policy(.cancel))
    let doomed = begin { await map.request(0..<20_000) }
    await origin.gate.arrivals(1)
    doomed.cancel()
    let results = try await doomed.value
    #expect(results.count == 20_000)
    #expect(
      results.values.allSatisfy { result in
        if case .failure(let error) = result { error is CancellationError } else { false }
      }
    )
    #expect(origin.gate.waiterCount == 0)
  }

  @Test func `a cancelled last caller of several keys leaves a fetch that ends and is stored`()
    async throws
  {
    let map = origin.makeMap(policy: policy(.finishAndStore))
    let doomed = begin { await map.request([1, 2]) }
    await origin.gate.arrivals(1)
    doomed.cancel()
    _ = try await doomed.value
    let states = Recorder(map.subscribe(to: 2))
    origin.gate.open()
    _ = await states.first(2)
    #expect(outcomes(await map.request([1, 2])) == [1: "101", 2: "102"])
    #expect(origin.calls.count == 1)
  }

  @Test func `a fetch of several keys is cancelled only when no caller waits for any of its keys`()
    async throws
  {
    let map = origin.makeMap(policy: policy(.cancel))
    let first = begin { await map.request([1, 2, 3]) }
    await origin.gate.arrivals(1)
    let second = begin { try await map.request(3) }
    first.cancel()
    _ = try await first.value
    #expect(origin.gate.waiterCount == 1)
    // Key 1 has no callers: a new caller does not join a fetch that can be cancelled.
    let again = begin { try await map.request(1) }
    await origin.gate.arrivals(2)
    second.cancel()
    await #expect(throws: CancellationError.self) { try await second.value }
    #expect(origin.gate.waiterCount == 1, "The fetch was cancelled when cancel() returned")
    origin.gate.open()
    #expect(try await again.value == 201)
    #expect(map.cachedValue(3) == nil)
    #expect(map.statistics.failures == 0)
  }

  @Test func `a caller of several keys that joins while a cancelled fetch unwinds gets a value`()
    async throws
  {
    let unwinding = Gate()
    let tally = Tally()
    let map = MultiplexerMap<Int, Int>.bulk(policy: policy(.cancel)) { keys in
      let number = tally.increment()
      if number == 1 { await waitUnmoved(unwinding) }
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, number) })
    }
    let doomed = begin { await map.request([1, 2]) }
    await unwinding.arrivals(1)
    doomed.cancel()
    _ = try await doomed.value
    #expect(outcomes(await map.request([1, 2])) == [1: "2", 2: "2"])
    unwinding.open()
    #expect(map.cachedValue(1) == 2, "The late result of a cancelled fetch is not stored")
  }

  @Test func `a CancellationError of a fetch of several keys is a failure like any other`() async {
    var policy = policy(.finishAndStore)
    policy.failureTimeToLive = .seconds(1_000)
    let calls = Tally()
    let map = MultiplexerMap<Int, Int>.bulk(policy: policy) { keys in
      if calls.increment() == 1 { throw CancellationError() }
      return Dictionary(uniqueKeysWithValues: keys.map { ($0, $0) })
    }
    for _ in 0..<2 {
      let results = outcomes(await map.request([1, 2]))
      #expect(results == [1: "CancellationError", 2: "CancellationError"])
    }
    #expect(map.statistics.failures == 1)
    #expect(calls.increment() == 2, "It is remembered")
  }

  @Test func `a request of keys that is cancelled before another attempt is not tried again`()
    async throws
  {
    var policy = policy(.cancel)
    policy.retry = .exponential(attempts: 9, base: .seconds(9), cap: .seconds(9), jitter: 0)
    let clock = ManualClock()
    let calls = Tally()
    let map = MultiplexerMap<Int, Int>.bulk(policy: policy, clock: clock) { _ in
      calls.increment()
      throw Broken()
    }
    let doomed = begin { await map.request([1, 2]) }
    await clock.sleepers(1)
    doomed.cancel()
    _ = try await doomed.value
    clock.advance(by: .seconds(100))
    #expect(calls.value == 1)
  }

  @Test
  func `a cancelled caller takes the fetch with it though a stored copy has answered one key`()
    async throws
  {
    var policy = policy(.cancel)
    policy.cacherRead = .beforeFetch
    let cacher = SimpleCacher([1: 11])
    let map = MultiplexerMap<Int, Int>.bulk(policy: policy, cacher: cacher, clock: ManualClock()) {
      [origin] in try await origin.fetch($0)
    }
    let doomed = begin { await map.request([1, 2, 3]) }
    await origin.gate.arrivals(1)
    #expect(map.cachedValue(1) == 11)
    doomed.cancel()
    #expect(
      outcomes(try await doomed.value)
        == [1: "11", 2: "CancellationError", 3: "CancellationError"]
    )
    #expect(origin.gate.waiterCount == 0, "The fetch was cancelled when cancel() returned")
    #expect(origin.calls == [[2, 3]])
  }

  @Test func `keys are not fetched for a caller that left while copies were read`() async throws {
    var policy = policy(.cancel)
    policy.cacherRead = .beforeFetch
    let reading = Gate()
    let cacher = SimpleCacher([:], reading: reading)
    let map = MultiplexerMap<Int, Int>.bulk(policy: policy, cacher: cacher, clock: ManualClock()) {
      [origin] in try await origin.fetch($0)
    }
    origin.gate.open()
    let doomed = begin { await map.request([1, 2, 3]) }
    await reading.arrivals(3)
    let other = begin { await map.request([2, 3]) }
    doomed.cancel()
    _ = try await doomed.value
    reading.open()
    #expect(outcomes(try await other.value) == [2: "102", 3: "103"])
    #expect(origin.calls == [[2, 3]])
  }
}
