import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Calls that continue after the end of their limited fetches.
@Suite(.fewAtOnce) struct `A call that outlasts its limited fetch` {
  let clock = ManualClock()
  let origin = LimitedOrigin()

  /// A map with a limit of one, in which the fetch of the first key continues, and requests the second one.
  private func makeMap(
    _ change: (inout CachePolicy) -> Void = { _ in }
  ) async -> (map: MultiplexerMap<Int, Int>, nested: RecordedChannel<Task<Int, any Error>>) {
    let own = OwnCache<MultiplexerMap<Int, Int>>()
    let nested = RecordedChannel<Task<Int, any Error>>()
    let policy = LimitedOrigin.policy(1, change)
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) { [origin] key in
      let value = try await origin.fetch(key, isStubborn: true)
      guard key == 1 else { return value }
      let map = own.elements[0]
      let task = Task(executorPreference: SpotExecutor.shared) { try await map.request(2) }
      nested.send(task)
      return try await task.value
    }
    own.send(map)
    _ = await own.first()
    return (map, nested)
  }

  @Test(.guarantee(.nestedFetchesShareAPlace))
  func `a fetch that continues after its time limit does not wait for its own place`() async throws
  {
    let (map, nested) = await makeMap { $0.fetchTimeout = .seconds(10) }
    let caller = begin { try await map.request(1) }
    await origin.begins(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(10))
    await #expect(throws: MultiplexerError.fetchTimedOut(after: .seconds(10))) {
      try await caller.value
    }
    let other = begin { try await map.request(3) }
    for key in 1...3 { origin.gate(key).open() }
    _ = try await nested.recorder.first(1)[0].value
    #expect(try await other.value == 103)
    #expect(origin.begun == [1, 2, 3])
    #expect(map.statistics.running == 0)
  }

  @Test(.guarantee(.nestedFetchesShareAPlace))
  func `a fetch that continues after a store does not wait for its own place`() async throws {
    let (map, nested) = await makeMap()
    let caller = begin { try await map.request(1) }
    await origin.begins(1)
    map.store(7, for: 1)
    #expect(try await caller.value == 7)
    let other = begin { try await map.request(3) }
    for key in 1...3 { origin.gate(key).open() }
    #expect(try await nested.recorder.first(1)[0].value == 102)
    #expect(try await other.value == 103)
    #expect(origin.begun == [1, 2, 3])
  }

  @Test func `a fetch that continues after its time limit can request its own key`() async throws {
    let own = OwnCache<MultiplexerMap<Int, Int>>()
    let nested = RecordedChannel<Task<Int, any Error>>()
    let tally = Tally()
    let policy = LimitedOrigin.policy(1) { $0.fetchTimeout = .seconds(10) }
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) { [origin] key in
      let isFirst = tally.increment() == 1
      let value = try await origin.fetch(key, isStubborn: true)
      guard isFirst else { return value }
      let map = own.elements[0]
      let task = Task(executorPreference: SpotExecutor.shared) { try await map.request(key) }
      nested.send(task)
      return try await task.value
    }
    own.send(map)
    _ = await own.first()
    let caller = begin { try await map.request(1) }
    await origin.begins(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(10))
    _ = await caller.result
    origin.gate(1).open()
    #expect(try await nested.recorder.first(1)[0].value == 201)
  }

  /// Requests a value whose first attempt continues after its time limit, and lets the time of the second one come.
  private func beginSecondAttempt(
    _ maximum: Int
  ) async -> (map: MultiplexerMap<Int, Int>, caller: Task<Int, any Error>) {
    let map = origin.makeMap(maximum, clock: clock, isStubborn: true) {
      $0.fetchTimeout = .seconds(10)
      $0.retry = .exponential(attempts: 2, base: .seconds(1), cap: .seconds(1), jitter: 0)
    }
    let caller = begin { try await map.request(1) }
    await origin.begins(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(10))
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    return (map, caller)
  }

  @Test(.guarantee(.fetchesStayWithinTheirLimit))
  func `a fetch whose attempt never ends does not wait for itself before the next one for good`()
    async throws
  {
    let (map, caller) = await beginSecondAttempt(1)
    // It waits for another place.
    await clock.sleepers(1)
    #expect(map.statistics.waiting == 1)
    clock.advance(by: .seconds(10))
    await #expect(throws: MultiplexerError.fetchTimedOut(after: .seconds(10))) {
      try await caller.value
    }
    #expect(map.statistics.waiting == 0)
    #expect(origin.begun == [1], "No two calls run at the same time")
    origin.gate(1).open()
  }

  @Test(.guarantee(.fetchesStayWithinTheirLimit))
  func `the next attempt begins when the call of the one before has returned`() async throws {
    let (map, caller) = await beginSecondAttempt(1)
    await clock.sleepers(1)
    origin.gate(1).open()
    #expect(try await caller.value == 201)
    #expect(map.statistics.running == 0)
  }

  @Test func `the next attempt takes another place, if there is one`() async throws {
    let (map, caller) = await beginSecondAttempt(2)
    await origin.begins(2)
    #expect(map.statistics.running == 2)
    origin.gate(1).open()
    #expect(try await caller.value == 201)
  }
}
