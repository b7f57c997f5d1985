import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A cache with a limit for its fetches` {
  let clock = ManualClock()
  let origin = LimitedOrigin()

  @Test(.guarantee(.fetchesStayWithinTheirLimit))
  func `a limit for fetches lets so many run, and starts the others in order`() async throws {
    let map = origin.makeMap(2)
    let callers = (1...5).map { key in begin { try await map.request(key) } }
    await origin.begins(2)
    #expect(Set(origin.begun) == [1, 2])
    #expect(map.statistics.running == 2)
    #expect(map.statistics.waiting == 3)
    #expect(map.statistics.fetches == 2)
    for key in [2, 1, 3, 4, 5] { origin.gate(key).open() }
    for (key, caller) in zip(1...5, callers) { #expect(try await caller.value == 100 + key) }
    #expect(origin.begun.suffix(3).sorted() == [3, 4, 5])
    #expect(map.statistics.counts == CacheStatistics(misses: 5, fetches: 5))
  }

  @Test func `a limit for fetches starts the next one when one ends, not before`() async throws {
    let map = origin.makeMap(1)
    let callers = (1...4).map { key in begin { try await map.request(key) } }
    for key in 1...4 {
      await origin.begins(key)
      #expect(origin.begun == Array(1...key))
      #expect(map.statistics.waiting == 4 - key)
      origin.gate(key).open()
      #expect(try await callers[key - 1].value == 100 + key)
    }
  }

  @Test func `a limit for fetches concerns each cache alone, and failed and cancelled fetches`()
    async throws
  {
    let tally = Tally()
    var policy = LimitedOrigin.policy(1)
    policy.whenUnobserved = .cancel
    let failing = MultiplexerMap<Int, Int>(policy: policy) { key in
      tally.increment()
      if key == 1 { throw Broken() }
      return try await self.origin.fetch(key)
    }
    let other = origin.makeMap(1)
    let busy = begin { try await other.request(9) }
    await #expect(throws: Broken.self) { try await failing.request(1) }
    let doomed = begin { try await failing.request(2) }
    await origin.begins(2)
    let next = begin { try await failing.request(3) }
    doomed.cancel()
    await #expect(throws: CancellationError.self) { try await doomed.value }
    await origin.begins(3)
    origin.gate(3).open()
    #expect(try await next.value == 103)
    origin.gate(9).open()
    #expect(try await busy.value == 109)
    #expect(failing.statistics.running == 0)
  }

  @Test(.guarantee(.fetchesStayWithinTheirLimit))
  func `a waiting fetch with a higher priority begins first`() async throws {
    let map = origin.makeMap(1)
    let first = begin { try await map.request(1) }
    let low = begin(priority: .low) { try await map.request(2) }
    let middle = begin(priority: .medium) { try await map.request(3) }
    let high = begin(priority: .high) { try await map.request(4) }
    // A caller raises what it joins.
    let raising = begin(priority: .high) { try await map.request(2) }
    #expect(map.statistics.waiting == 3)
    for key in 1...4 { origin.gate(key).open() }
    for caller in [first, low, middle, high, raising] { _ = try await caller.value }
    #expect(origin.begun == [1, 2, 4, 3], "Of equal priorities, the one that came first")
  }

  @Test func `a waiting fetch is moved by a later escalation of its caller`() async throws {
    guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
    let map = origin.makeMap(1)
    let first = begin(priority: .low) { try await map.request(1) }
    let second = begin(priority: .low) { try await map.request(2) }
    let third = begin(priority: .low) { try await map.request(3) }
    third.escalatePriority(to: .high)
    for key in 1...3 { origin.gate(key).open() }
    for caller in [first, second, third] { _ = try await caller.value }
    #expect(origin.begun == [1, 3, 2])
  }

  @Test func `renewals in the background wait behind callers, until a caller joins them`()
    async throws
  {
    let map = origin.makeMap(1, clock: clock) {
      $0.timeToLive = .seconds(10)
      $0.staleWhileRevalidate = .seconds(10)
    }
    for key in 1...3 { map.store(key, for: key) }
    clock.advance(by: .seconds(15))
    let first = begin { try await map.request(0) }
    for key in 1...3 { #expect(try await map.request(key) == key) }
    #expect(map.statistics.waiting == 3)
    let caller = begin { try await map.request(4) }
    clock.advance(by: .seconds(5))
    // No longer an answer, so that the caller waits for the renewal.
    let joining = begin { try await map.request(3) }
    for key in 0...4 { origin.gate(key).open() }
    _ = try await first.value
    #expect(try await caller.value == 104)
    #expect(try await joining.value == 103)
    await origin.begins(5)
    #expect(origin.begun.first == 0)
    #expect(Set(origin.begun[1...2]) == [3, 4])
    #expect(origin.begun[3...] == [1, 2])
  }

  @Test(
    .guarantee(.fetchesStayWithinTheirLimit),
    arguments: [CachePolicy.UnobservedFetch.cancel, .finishAndStore]
  )
  func `the last caller of a waiting fetch takes it along, whatever the policy says`(
    whenUnobserved: CachePolicy.UnobservedFetch
  ) async throws {
    let map = origin.makeMap(1) { $0.whenUnobserved = whenUnobserved }
    let first = begin { try await map.request(1) }
    let doomed = [2, 2, 3].map { key in begin { try await map.request(key) } }
    let last = begin { try await map.request(4) }
    #expect(map.statistics.waiting == 3)
    doomed[0].cancel()
    #expect(map.statistics.waiting == 3, "Another caller waits for it")
    for caller in doomed { caller.cancel() }
    #expect(map.statistics.waiting == 1)
    for caller in doomed {
      await #expect(throws: CancellationError.self) { try await caller.value }
    }
    for key in 1...4 { origin.gate(key).open() }
    _ = try await first.value
    #expect(try await last.value == 104)
    #expect(origin.begun == [1, 4])
    // The key is as before, and can be requested again.
    #expect(try await map.request(2) == 102)
    #expect(map.statistics.failures == 0)
    #expect(map.statistics.fetches == 3)
  }

  @Test func `a waiting fetch without callers stays if it was prefetched`() async throws {
    let map = origin.makeMap(1) { $0.whenUnobserved = .cancel }
    let first = begin { try await map.request(1) }
    map.prefetch([2])
    let joining = begin { try await map.request(2) }
    joining.cancel()
    await #expect(throws: CancellationError.self) { try await joining.value }
    #expect(map.statistics.waiting == 1)
    for key in 1...2 { origin.gate(key).open() }
    _ = try await first.value
    await origin.begins(2)
    #expect(try await map.request(2) == 102)
  }

  @Test func `a cancelled caller starts no fetch, and waits for none`() async throws {
    let map = origin.makeMap(1)
    let first = begin { try await map.request(1) }
    let caller = begin {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await map.request(2)
    }
    await #expect(throws: CancellationError.self) { try await caller.value }
    #expect(map.statistics.waiting == 0)
    origin.gate(1).open()
    _ = try await first.value
    #expect(origin.begun == [1])
  }
}

// MARK: - Beyond the second limit

extension `A cache with a limit for its fetches` {
  @Test(.guarantee(.overloadIsRefused))
  func `a request beyond the limit of waiting fetches fails at once, and is not remembered`()
    async throws
  {
    let map = origin.makeMap(1, waiting: 1) { $0.failureTimeToLive = .seconds(100) }
    let states = Recorder(map.subscribe(to: 3, bufferingPolicy: .unbounded))
    let first = begin { try await map.request(1) }
    let second = begin { try await map.request(2) }
    await #expect(throws: MultiplexerError.overloaded) { try await map.request(3) }
    #expect(outcomes(await map.request([3, 4])) == [3: "MultiplexerError", 4: "MultiplexerError"])
    let joining = begin { try await map.request(2) }
    for key in 1...3 { origin.gate(key).open() }
    _ = try await (first.value, second.value, joining.value)
    #expect(try await map.request(3) == 103)
    #expect(await states.first(3).map(\.name) == ["unknown", "loading", "loaded 103"])
    #expect(map.statistics.counts == CacheStatistics(misses: 6, joins: 1, fetches: 3))
  }

  @Test(.guarantee(.overloadIsRefused))
  func `a request beyond the limit gets a stale value if the policy allows one`() async throws {
    let map = origin.makeMap(1, waiting: 0, clock: clock) {
      $0.timeToLive = .seconds(10)
      $0.usesCachedValue = { ($0 as? MultiplexerError) == .overloaded }
    }
    let strict = origin.makeMap(1, waiting: 0, clock: clock) { $0.timeToLive = .seconds(10) }
    for map in [map, strict] { map.store(7, for: 7) }
    clock.advance(by: .seconds(10))
    let callers = [map, strict].map { map in begin { try await map.request(1) } }
    let response = try await map.response(7)
    #expect(response.value == 7)
    #expect(response.isStale)
    #expect(response.source == .memory)
    #expect(response.error as? MultiplexerError == .overloaded)
    #expect(outcomes(await map.request([7, 8])) == [7: "7", 8: "MultiplexerError"])
    await #expect(throws: MultiplexerError.overloaded) { try await strict.request(7) }
    #expect(strict.cachedValue(7) == 7, "It stays")
    origin.gate(1).open()
    for caller in callers { _ = try await caller.value }
    #expect(map.statistics.counts == CacheStatistics(staleHits: 2, misses: 2, fetches: 1))
  }

  @Test func `a directive of the value can allow it while its fetch is refused`() async throws {
    let map = MultiplexerMap<Int, Int>(policy: LimitedOrigin.policy(1, waiting: 0), clock: clock) {
      key,
      _ in
      guard key == 7 else { return .value(try await self.origin.fetch(key)) }
      var directives = CacheDirectives()
      directives.timeToLive = .seconds(10)
      directives.staleIfError = .seconds(10)
      return .value(7, directives: directives)
    }
    #expect(try await map.request(7) == 7)
    let busy = begin { try await map.request(1) }
    clock.advance(by: .seconds(19))
    #expect(try await map.request(7) == 7)
    clock.advance(by: .seconds(1))
    await #expect(throws: MultiplexerError.overloaded) { try await map.request(7) }
    origin.gate(1).open()
    _ = try await busy.value
  }

  @Test func `renewals and prefetches are skipped without room, and make room for callers`()
    async throws
  {
    let map = origin.makeMap(1, waiting: 1, clock: clock) {
      $0.timeToLive = .seconds(10)
      $0.staleWhileRevalidate = .seconds(10)
      $0.refreshAhead = .seconds(5)
    }
    for key in 1...3 { map.store(key, for: key) }
    let first = begin { try await map.request(0) }
    clock.advance(by: .seconds(6))
    #expect(try await map.request(1) == 1, "Its renewal waits")
    #expect(map.statistics.waiting == 1)
    #expect(try await map.request(2) == 2, "Its renewal is skipped")
    map.prefetch([8, 9])
    clock.advance(by: .seconds(5))
    #expect(try await map.request(3) == 3)
    #expect(map.statistics.waiting == 1)
    let states = Recorder(map.subscribe(to: 1, bufferingPolicy: .unbounded))
    let caller = begin { try await map.request(4) }
    #expect(map.statistics.waiting == 1, "In the place of the renewal")
    #expect(await states.first(2).map(\.name) == ["loading 1", "loaded 1"])
    for key in 0...4 { origin.gate(key).open() }
    _ = try await (first.value, caller.value)
    #expect(origin.begun == [0, 4])
    #expect(map.statistics.failures == 0)
    #expect(try await map.request(1) == 1)
    await origin.begins(3)
    #expect(origin.begun == [0, 4, 1])
  }

  @Test(.startsProcess) func `a policy without a place for a fetch stops the program`() async {
    await #expect(processExitsWith: .failure) {
      _ = Multiplexer(policy: LimitedOrigin.policy(0)) { 1 }
    }
    await #expect(processExitsWith: .failure) {
      _ = Multiplexer(policy: LimitedOrigin.policy(1, waiting: -1)) { 1 }
    }
  }
}
