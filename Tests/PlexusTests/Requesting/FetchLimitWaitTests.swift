import Plexus
import PlexusTesting
import TestSupport
import Testing

/// The waits of fetches for a place, and the places of fetches that do nothing for the origin.
@Suite(.fewAtOnce) struct `A fetch that waits for a place` {
  let clock = ManualClock()
  let origin = LimitedOrigin()

  @Test func `a cleared key whose fetch waits gives its callers the result and stores nothing`()
    async throws
  {
    let map = origin.makeMap(1) { $0.whenUnobserved = .cancel }
    let first = begin { try await map.request(1) }
    let second = begin { try await map.request(2) }
    map.prefetch([3])
    try await map.clear(2)
    try await map.clear(3)
    let again = begin { try await map.request(2) }
    for key in 1...3 { origin.gate(key).open() }
    _ = try await first.value
    #expect(try await second.value == 102)
    #expect(try await again.value == 202)
    #expect(map.cachedValue(2) == 202)
    #expect(origin.begun == [1, 2, 2], "No caller waits for the other key")
    #expect(map.statistics.waiting == 0)
  }

  @Test(.guarantee(.fetchesStayWithinTheirLimit))
  func `a sign-out leaves fetches that wait to their callers, and stores nothing`() async throws {
    let (map, repository) = (origin.makeMap(1), MuxRepository())
    map.register(in: repository)
    let first = begin { try await map.request(1) }
    let second = begin { try await map.request(2) }
    map.prefetch([3])
    try await repository.clearAll()
    for key in 1...3 { origin.gate(key).open() }
    #expect(try await first.value == 101)
    #expect(try await second.value == 102)
    #expect(try await map.request(4, opening: origin) == 104)
    #expect(map.keys == [4])
    #expect(origin.begun == [1, 2, 4])
  }

  @Test(arguments: [false, true])
  func `a refresh during the wait is served by the fetch that waits`(hasCacher: Bool) async throws {
    let map = origin.makeMap(1, cacher: hasCacher ? SimpleCacher() : nil)
    map.store(7, for: 2)
    let first = begin { try await map.request(1) }
    let second = begin { try await map.refresh(2).request(2) }
    let third = begin { try await map.refresh(2).request(2) }
    for key in 1...2 { origin.gate(key).open() }
    _ = try await first.value
    #expect(try await second.value == 102)
    #expect(try await third.value == 102)
    #expect(origin.begun == [1, 2])
  }

  @Test func `a refresh while a stored copy is read is served by the fetch, and not by the copy`()
    async throws
  {
    let reading = Gate()
    let map = origin.makeMap(1, cacher: SimpleCacher([2: 50, 3: 60], reading: reading)) {
      $0.cacherRead = .beforeFetch
    }
    let second = begin { try await map.request(2) }
    let other = begin { try await map.request(3) }
    await reading.arrivals(2)
    let third = begin { try await map.refresh(2).request(2) }
    reading.open()
    origin.gate(2).open()
    #expect(try await second.value == 102)
    #expect(try await third.value == 102)
    #expect(try await other.value == 60)
    #expect(origin.begun == [2])
  }

  @Test func `a value that is stored during the wait is the answer, and no fetch begins`()
    async throws
  {
    let map = origin.makeMap(1)
    let first = begin { try await map.request(1) }
    let second = begin { try await map.request(2) }
    map.store(7, for: 2)
    #expect(try await second.value == 7)
    for key in 1...2 { origin.gate(key).open() }
    _ = try await first.value
    #expect(try await map.request(3, opening: origin) == 103)
    #expect(origin.begun == [1, 3])
  }

  @Test(.guarantee(.fetchesStayWithinTheirLimit))
  func `the time limit of a fetch begins with the fetch, and not with the wait`() async throws {
    let map = origin.makeMap(1, clock: clock) { $0.fetchTimeout = .seconds(10) }
    let first = begin { try await map.request(1) }
    let second = begin { try await map.request(2) }
    await origin.begins(1)
    clock.advance(by: .seconds(9))
    origin.gate(1).open()
    _ = try await first.value
    await origin.begins(2)
    clock.advance(by: .seconds(9))
    origin.gate(2).open()
    #expect(try await second.value == 102)
  }

  @Test(.guarantee(.fetchesStayWithinTheirLimit))
  func `a fetch that was abandoned and still runs keeps its place`() async throws {
    let map = origin.makeMap(1, clock: clock, isStubborn: true) {
      $0.fetchTimeout = .seconds(10)
    }
    let first = begin { try await map.request(1) }
    let second = begin { try await map.request(2) }
    await origin.begins(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(10))
    await #expect(throws: MultiplexerError.fetchTimedOut(after: .seconds(10))) {
      try await first.value
    }
    #expect(map.statistics.abandoned == 1)
    #expect(map.statistics.running == 1)
    #expect(map.statistics.waiting == 1)
    #expect(origin.begun == [1])
    for key in 1...2 { origin.gate(key).open() }
    #expect(try await second.value == 102)
  }

  @Test(.guarantee(.fetchesStayWithinTheirLimit))
  func `a fetch gives its place back until its next attempt, and waits for it then`() async throws {
    let attempts = Tally()
    let policy = LimitedOrigin.policy(1) {
      $0.retry = .exponential(attempts: 2, base: .seconds(10), cap: .seconds(10), jitter: 0)
    }
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) { key in
      if key == 1, attempts.increment() == 1 { throw Broken() }
      return try await self.origin.fetch(key)
    }
    let first = begin { try await map.request(1) }
    await clock.sleepers(1)
    #expect(map.statistics.running == 0)
    let second = begin { try await map.request(2) }
    await origin.begins(1)
    clock.advance(by: .seconds(10))
    let states = map.statistics
    #expect(states.running == 1)
    origin.gate(2).open()
    _ = try await second.value
    await origin.begins(2)
    #expect(origin.begun == [2, 1])
    origin.gate(1).open()
    #expect(try await first.value == 101)
    #expect(map.statistics.counts == CacheStatistics(misses: 2, fetches: 2))
  }

  @Test func `a next attempt without room does not take place, and the error is that before`()
    async throws
  {
    let policy = LimitedOrigin.policy(1, waiting: 0) {
      $0.retry = .exponential(attempts: 2, base: .seconds(10), cap: .seconds(10), jitter: 0)
    }
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) { key in
      if key == 1 { throw Broken() }
      return try await self.origin.fetch(key)
    }
    let first = begin { try await map.request(1) }
    await clock.sleepers(1)
    let second = begin { try await map.request(2) }
    await origin.begins(1)
    clock.advance(by: .seconds(10))
    await #expect(throws: Broken.self) { try await first.value }
    origin.gate(2).open()
    _ = try await second.value
  }

  @Test(.guarantee(.fetchesStayWithinTheirLimit))
  func `a fetch of several keys takes one place, and so does a batch`() async throws {
    let calls = BulkOrigin()
    let map = MultiplexerMap<Int, Int>.bulk(
      policy: LimitedOrigin.policy(2),
      clock: clock,
      maximumBatchSize: 2,
      onFetch: { try await calls.fetch($0) }
    )
    let first = begin { await map.request([1, 2, 3, 4, 5]) }
    await calls.gate.arrivals(2)
    let single = begin { try await map.request(6) }
    let joining = begin { try await map.request(5) }
    #expect(map.statistics.running == 2)
    #expect(map.statistics.waiting == 2)
    calls.gate.open()
    #expect(try await first.value.count == 5)
    _ = try await (single.value, joining.value)
    #expect(calls.calls.count == 4)
    #expect(Set(calls.calls.prefix(2)) == [[1, 2], [3, 4]])
    #expect(map.statistics.counts == CacheStatistics(misses: 6, joins: 1, fetches: 4))
  }

  @Test func `a key whose callers leave while its batch waits is not fetched`() async throws {
    let calls = BulkOrigin()
    let map = calls.makeMap(policy: LimitedOrigin.policy(1))
    let first = begin { try await map.request(1) }
    let doomed = begin { await map.request([2, 3]) }
    let other = begin { await map.request([3]) }
    let gone = begin { await map.request([4, 5]) }
    await calls.gate.arrivals(1)
    doomed.cancel()
    gone.cancel()
    _ = try await (doomed.value, gone.value)
    #expect(map.statistics.waiting == 1)
    calls.gate.open()
    _ = try await (first.value, other.value)
    #expect(calls.calls == [[1], [3]])
  }

  @Test func `a batch of a window waits for a place when it departs`() async throws {
    let calls = BulkOrigin()
    let map = MultiplexerMap<Int, Int>.bulk(
      policy: LimitedOrigin.policy(1),
      clock: clock,
      window: .seconds(1),
      onFetch: { try await calls.fetch($0) }
    )
    let first = begin { try await map.request(1) }
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    await calls.gate.arrivals(1)
    let others = [2, 3].map { key in begin { try await map.request(key) } }
    await clock.sleepers(1)
    #expect(map.statistics.waiting == 0)
    clock.advance(by: .seconds(1))
    calls.gate.open()
    for caller in [first] + others { _ = try await caller.value }
    #expect(calls.calls == [[1], [2, 3]])
  }

  @Test func `stored copies are read without a place, and a fetch waits for one afterwards`()
    async throws
  {
    let map = origin.makeMap(1, waiting: 1, cacher: SimpleCacher([5: 50])) {
      $0.cacherRead = .beforeFetch
    }
    let first = begin { try await map.request(1) }
    await origin.begins(1)
    let second = begin { try await map.request(2) }
    #expect(try await map.request(5) == 50)
    #expect(try await map.response(5).value == 50)
    for key in 1...2 { origin.gate(key).open() }
    _ = try await first.value
    #expect(try await second.value == 102)
    try await map.flush()
    #expect(map.statistics.running == 0)
  }

  @Test func `a fetch that is refused after its copy was read uses the copy if it may`()
    async throws
  {
    let map = origin.makeMap(1, waiting: 0, cacher: SimpleCacher([5: 50])) {
      $0.cacherRead = .beforeFetch
      $0.timeToLive = .zero
      $0.usesCachedValue = { ($0 as? MultiplexerError) == .overloaded }
      $0.failureTimeToLive = .seconds(100)
    }
    let first = begin { try await map.request(1) }
    await origin.begins(1)
    let response = try await map.response(5)
    #expect(response.value == 50)
    #expect(response.error as? MultiplexerError == .overloaded)
    await #expect(throws: MultiplexerError.overloaded) { try await map.request(6) }
    origin.gate(1).open()
    _ = try await first.value
    #expect(try await map.request(6, opening: origin) == 106)
    #expect(map.statistics.failures == 0)
  }

  @Test(
    .guarantee(.overloadIsRefused),
    arguments: [CachePolicy.CacherRead.beforeFetch, .afterConnectivityError]
  )
  func `a request beyond the limit gets a stored copy if the policy allows one`(
    read: CachePolicy.CacherRead
  ) async throws {
    let map = origin.makeMap(1, waiting: 0, cacher: SimpleCacher([5: 50, 6: 60])) {
      $0.cacherRead = read
      $0.timeToLive = .zero
      $0.usesCachedValue = { ($0 as? MultiplexerError) == .overloaded }
    }
    let first = begin { try await map.request(1) }
    await origin.begins(1)
    let response = try await map.response(5)
    #expect(response.value == 50)
    #expect(response.error as? MultiplexerError == .overloaded)
    #expect(outcomes(await map.request([6, 7])) == [6: "60", 7: "MultiplexerError"])
    let strict = origin.makeMap(1, waiting: 0, cacher: SimpleCacher([5: 50])) {
      $0.timeToLive = .zero
    }
    let other = begin { try await strict.request(1) }
    await #expect(throws: MultiplexerError.overloaded) { try await strict.request(5) }
    origin.gate(1).open()
    _ = try await (first.value, other.value)
    #expect(origin.begun == [1, 1])
  }

  @Test func `a cache with a limit is released with its last fetch`() async throws {
    let gone = Gate()
    weak var released: Token?
    do {
      let token = Token(gone)
      released = token
      let map = MultiplexerMap<Int, Int>(policy: LimitedOrigin.policy(1)) { key in
        withExtendedLifetime(token) {}
        return try await self.origin.fetch(key)
      }
      let callers = (1...3).map { key in begin { try await map.request(key) } }
      callers[1].cancel()
      for key in 1...3 { origin.gate(key).open() }
      for caller in callers { _ = await caller.result }
    }
    try await gone.wait()
    #expect(released == nil)
  }
}

extension MultiplexerMap<Int, Int> {
  /// Requests a key whose fetch does not wait.
  fileprivate func request(_ key: Int, opening origin: LimitedOrigin) async throws -> Int {
    origin.gate(key).open()
    return try await request(key)
  }
}

/// An object that opens a gate when it is released.
private final class Token: Sendable {
  private let gate: Gate

  init(_ gate: Gate) { self.gate = gate }

  deinit { gate.open() }
}
