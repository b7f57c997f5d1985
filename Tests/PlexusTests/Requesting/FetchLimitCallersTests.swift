import Plexus
import PlexusTesting
import TestSupport
import Testing

/// The order of fetches that wait for a place, as their callers come and go.
@Suite(.fewAtOnce) struct `A waiting fetch whose callers come and go` {
  let clock = ManualClock()
  let origin = LimitedOrigin()

  @Test(.guarantee(.overloadIsRefused))
  func `a prefetch that a caller has joined and left makes room for a caller`() async throws {
    let map = origin.makeMap(1, waiting: 1)
    let first = begin { try await map.request(1) }
    map.prefetch([2])
    let joining = begin { try await map.request(2) }
    joining.cancel()
    await #expect(throws: CancellationError.self) { try await joining.value }
    #expect(map.statistics.waiting == 1)
    let caller = begin { try await map.request(3) }
    for key in 1...3 { origin.gate(key).open() }
    #expect(try await first.value == 101)
    #expect(try await caller.value == 103)
    #expect(origin.begun == [1, 3])
  }

  @Test func `a prefetch that a caller has joined and left waits behind callers`() async throws {
    let map = origin.makeMap(1)
    let first = begin { try await map.request(1) }
    map.prefetch([2])
    let joining = [2, 2].map { key in begin { try await map.request(key) } }
    for caller in joining { caller.cancel() }
    for caller in joining { _ = await caller.result }
    let caller = begin { try await map.request(3) }
    for key in 1...3 { origin.gate(key).open() }
    _ = try await first.value
    #expect(try await caller.value == 103)
    await origin.begins(3)
    #expect(origin.begun == [1, 3, 2])
  }

  @Test func `a prefetch that one of two callers has left stays before later callers`()
    async throws
  {
    let map = origin.makeMap(1)
    let first = begin { try await map.request(1) }
    map.prefetch([2])
    let joining = [2, 2].map { key in begin { try await map.request(key) } }
    joining[0].cancel()
    _ = await joining[0].result
    let caller = begin { try await map.request(3) }
    for key in 1...3 { origin.gate(key).open() }
    _ = try await (first.value, joining[1].value, caller.value)
    #expect(origin.begun == [1, 2, 3])
  }

  @Test func `a fetch that a soft timeout has answered waits behind callers`() async throws {
    let map = origin.makeMap(1, clock: clock) {
      $0.timeToLive = .seconds(10)
      $0.softTimeout = .seconds(1)
    }
    map.store(7, for: 2)
    clock.advance(by: .seconds(20))
    let first = begin { try await map.request(1) }
    let soft = begin { try await map.request(2) }
    await clock.sleepers(2)
    clock.advance(by: .seconds(1))
    #expect(try await soft.value == 7)
    let caller = begin { try await map.request(3) }
    for key in 1...3 { origin.gate(key).open() }
    _ = try await (first.value, caller.value)
    await origin.begins(3)
    #expect(origin.begun == [1, 3, 2])
  }

  @Test func `a prefetch of several keys waits behind callers once all of its own have left`()
    async throws
  {
    let calls = BulkOrigin()
    let map = calls.makeMap(policy: LimitedOrigin.policy(1))
    let first = begin { try await map.request(1) }
    map.prefetch([2, 3])
    let joining = [2, 3].map { key in begin { try await map.request(key) } }
    joining[0].cancel()
    _ = await joining[0].result
    map.prefetch([4, 5])
    let gone = [4, 5].map { key in begin { try await map.request(key) } }
    for caller in gone { caller.cancel() }
    for caller in gone { _ = await caller.result }
    let caller = begin { try await map.request(6) }
    await calls.gate.arrivals(1)
    calls.gate.open()
    _ = try await (first.value, joining[1].value, caller.value)
    #expect(try await map.request(4) == 404)
    #expect(calls.calls == [[1], [2, 3], [6], [4, 5]])
  }

  @Test func `callers that are cancelled at once leave nothing behind in the queue`() async throws {
    let map = origin.makeMap(1, waiting: 5)
    let first = begin { try await map.request(0) }
    for round in 0..<100 {
      let callers = (1...5).map { key in begin { try await map.request(key) } }
      if round.isMultiple(of: 2) { try await map.clear() }
      for caller in callers.shuffled() { caller.cancel() }
      for caller in callers { _ = await caller.result }
      #expect(map.statistics.waiting == 0)
    }
    #expect(map.statistics.running == 1)
    origin.gate(0).open()
    _ = try await first.value
    #expect(map.statistics.running == 0)
    #expect(origin.begun == [0])
  }

  @Test(arguments: [1, Int.max])
  func `extreme limits let everything through in the end`(limit: Int) async throws {
    let map = MultiplexerMap<Int, Int>(policy: LimitedOrigin.policy(limit, waiting: Int.max)) { $0 }
    let tasks = (0..<1_000).map { key in Task { try await map.request(key % 300) } }
    for (key, task) in tasks.enumerated() { #expect(try await task.value == key % 300) }
    let statistics = map.statistics
    #expect(statistics.running == 0 && statistics.waiting == 0 && statistics.fetches == 300)
  }

  @Test func `the last live subscription of a waiting fetch takes it along`() async throws {
    let map = origin.makeMap(1)
    let busy = begin { try await map.request(9) }
    await origin.begins(1)
    var states: Subscription<LoadState<Int>>? = map[2].subscription(refetching: .whenStale)
    #expect(map.statistics.waiting == 1)
    withExtendedLifetime(states) {}
    states = nil
    // The wait of the subscription ends in a task.
    while map.statistics.waiting > 0 { await Task.detached {}.value }
    for key in [2, 9] { origin.gate(key).open() }
    _ = try await busy.value
    #expect(origin.begun == [9])
  }

  @Test func `the last caller and the last live subscription take a waiting fetch along`()
    async throws
  {
    let map = origin.makeMap(1)
    let busy = begin { try await map.request(9) }
    await origin.begins(1)
    let caller = begin { try await map.request(2) }
    var states: Subscription<LoadState<Int>>? = map[2].subscription(refetching: .whenStale)
    withExtendedLifetime(states) {}
    caller.cancel()
    _ = await caller.result
    #expect(map.statistics.waiting == 1)
    states = nil
    // The wait of the subscription ends in a task.
    while map.statistics.waiting > 0 { await Task.detached {}.value }
    for key in [2, 9] { origin.gate(key).open() }
    _ = try await busy.value
    #expect(origin.begun == [9])
  }
}
