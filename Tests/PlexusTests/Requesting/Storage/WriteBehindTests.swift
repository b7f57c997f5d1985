import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Writing behind` {
  let clock = ManualClock()
  let policy = CachePolicy(writeBehind: .seconds(3))

  private func map(_ cacher: any Cacher<Int>) -> MultiplexerMap<Int, Int> {
    MultiplexerMap<Int, Int>(policy: policy, cacher: cacher, clock: clock) { $0 }
  }

  /// Waits until a condition holds, but not without end.
  private func wait(until isSatisfied: () -> Bool) async {
    var attempts = 0
    while !isSatisfied(), attempts < 100_000 {
      await Task.detached {}.value
      attempts += 1
    }
    #expect(isSatisfied())
  }

  @Test(.guarantee(.writeBehindWritesAndRetries))
  func `writing behind writes what was stored, fetched and updated after the given time`()
    async throws
  {
    let cacher = SimpleCacher()
    let map = map(cacher)
    let events = Recorder(map.events())
    map.store(1, for: 1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(2))
    _ = try await map.request(2)
    map.update(1) { $0 = 9 }
    #expect(cacher.values.isEmpty)
    clock.advance(by: .seconds(1))
    #expect(await events.first(4).last?.description == "2 values were written to the cacher")
    #expect(cacher.values == ["1": 9, "2": 2])
  }

  @Test(.guarantee(.writeBehindWritesAndRetries))
  func `writing behind counts the time from the first change that is not written`() async throws {
    let cacher = SimpleCacher()
    let map = map(cacher)
    let events = Recorder(map.events())
    map.store(1, for: 1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(2))
    try await map.flush()
    map.store(2, for: 2)
    clock.advance(by: .seconds(1))
    // The timer of the first change sleeps again.
    await clock.sleepers(1)
    #expect(cacher.values == ["1": 1])
    clock.advance(by: .seconds(2))
    #expect(await events.first(4).last?.description == "1 values were written to the cacher")
    #expect(cacher.values == ["1": 1, "2": 2])
  }

  @Test(.guarantee(.writesContinueDuringRemovals))
  func `writing behind writes what is stored while copies are removed for an earlier write`()
    async throws
  {
    let cacher = ControlledCacher<Int>()
    let map = map(cacher)
    let rounds = Tally()
    map.store(1, for: 7)
    await clock.sleepers(1)
    cacher.fail(.remove)
    await #expect(throws: CacherError.self) { try await map.clear(7) }
    cacher.mend()
    // Copies are removed again and again, up to a limit: the last value has to wait.
    cacher.onCall { [weak map] call in
      guard let map, call.operation == .remove, rounds.value < 8 else { return }
      let round = rounds.increment()
      try await map.clear(7)
      map.store(10 + round, for: 7)
    }
    clock.advance(by: .seconds(3))
    // The timer sleeps until the next write.
    await wait { clock.nextDeadline?.offset == .seconds(6) && rounds.value == 8 }
    #expect(cacher.value("7") == nil)
    clock.advance(by: .seconds(3))
    await wait { cacher.value("7") != nil }
    #expect(cacher.value("7") == 18)
  }

  @Test(.guarantee(.writeBehindWritesAndRetries))
  func `writing behind tries again after the same time`()
    async throws
  {
    let cacher = FailingCacher(failures: 2)
    let map = map(cacher)
    let events = Recorder(map.events())
    map.store(1, for: 1)
    for count in 1...2 {
      await clock.sleepers(1)
      clock.advance(by: .seconds(3))
      _ = await events.first(1 + count)
    }
    await clock.sleepers(1)
    clock.advance(by: .seconds(2))
    #expect(cacher.stored == [:])
    clock.advance(by: .seconds(1))
    #expect(await events.first(4).last?.description == "1 values were written to the cacher")
    #expect(cacher.stored == ["1": 1])
  }

  @Test(.guarantee(.writeBehindWritesAndRetries))
  func `writing behind loses nothing of a map that is released`()
    async throws
  {
    let cacher = SimpleCacher()
    var map: MultiplexerMap<Int, Int>? = self.map(cacher)
    map?.store(1, for: 1)
    await clock.sleepers(1)
    weak let released = map
    map = nil
    #expect(released == nil)
    clock.advance(by: .seconds(3))
    await cacher.stores(1)
    #expect(cacher.values == ["1": 1])
  }

  @Test(.guarantee(.releasedMapsWriteTheirChanges))
  func `writing behind loses nothing that changes while a released map is written`() async throws {
    let cacher = SlowCacher()
    let policy = CachePolicy(storageTimeout: .seconds(10_000_000_000), writeBehind: .seconds(3))
    var map: MultiplexerMap<Int, Int>? = MultiplexerMap(
      policy: policy,
      cacher: cacher,
      clock: clock
    ) { $0 }
    map?.store(1, for: 1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(3))
    await cacher.gate.arrivals(1)
    map?.store(2, for: 2)
    map?.store(3, for: 1)
    map = nil
    cacher.gate.open()
    await cacher.stores(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(3))
    await cacher.stores(2)
    #expect(cacher.values == ["1": 3, "2": 2])
  }

  @Test(.guarantee(.releasedMapsWriteTheirChanges), arguments: [1, 5], [false, true])
  func `writing behind loses nothing of a map that is released after failed writes`(
    failures: Int,
    isFlushed: Bool
  ) async throws {
    let cacher = FailingCacher(failures: failures)
    let policy = CachePolicy(storageTimeout: .seconds(10_000_000_000), writeBehind: .seconds(3))
    var map: MultiplexerMap<Int, Int>? = MultiplexerMap(
      policy: policy,
      cacher: cacher,
      clock: clock
    ) { $0 }
    map?.store(1, for: 1)
    await clock.sleepers(1)
    if isFlushed {
      await #expect(throws: CacherError.self) { try await map?.flush() }
    }
    map = nil
    for attempt in (isFlushed ? 2 : 1)...failures + 1 {
      await clock.sleepers(1)
      clock.advance(by: .seconds(3))
      await cacher.attempts(attempt)
    }
    await cacher.ends(failures + 1)
    #expect(cacher.stored == ["1": 1])
  }

  @Test
  func `writing behind ends with a released map once sixteen writes in succession have failed`()
    async throws
  {
    let cacher = FailingCacher(failures: .max)
    weak let token: Token?
    var map: MultiplexerMap<Int, Int>?
    do {
      let captured = Token()
      token = captured
      map = MultiplexerMap(
        // Without a time limit of the cacher nothing else sleeps.
        policy: CachePolicy(storageTimeout: .seconds(10_000_000_000), writeBehind: .seconds(3)),
        cacher: cacher,
        clock: clock
      ) { key in
        withExtendedLifetime(captured) { key }
      }
    }
    map?.store(1, for: 1)
    map = nil
    for attempt in 1...16 {
      #expect(token != nil)
      await clock.sleepers(1)
      clock.advance(by: .seconds(3))
      await cacher.ends(attempt)
    }
    await wait { token == nil }
    while clock.sleeperCount > 0 { clock.advance(by: .seconds(3)) }
    #expect(cacher.attemptCount == 16)
  }

  @Test(.guarantee(.writeBehindWritesAndRetries))
  func `writing behind without a delay does not try again at once`() async {
    let cacher = FailingCacher(failures: 1)
    let map = MultiplexerMap<Int, Int>(
      // Without a time limit of the cacher nothing else sleeps.
      policy: CachePolicy(storageTimeout: .seconds(10_000_000_000), writeBehind: .zero),
      cacher: cacher,
      clock: clock
    ) { $0 }
    map.store(1, for: 1)
    await clock.sleepers(1)
    #expect(cacher.stored.isEmpty)
    clock.advance(by: .milliseconds(100))
    await cacher.attempts(2)
    #expect(cacher.stored == ["1": 1])
    map.store(2, for: 2)
    await cacher.attempts(3)
  }

  @Test func `writing behind is off by default`() async {
    let cacher = SimpleCacher()
    let map = MultiplexerMap<Int, Int>(cacher: cacher, clock: clock) { $0 }
    map.store(1, for: 1)
    #expect(clock.sleeperCount == 0)
  }
}

private final class Token: Sendable {}

/// A cacher whose first stores fail.
private final class FailingCacher: Cacher {
  private let state: Guarded<(failures: Int, stored: [String: Int])>
  private let calls = Gate()
  private let finished = Gate()

  init(failures: Int) {
    state = Guarded((failures, [:]))
    calls.open()
    finished.open()
  }

  var stored: [String: Int] { state.withLock { $0.stored } }

  var attemptCount: Int { calls.arrivalCount }

  func attempts(_ count: Int) async { await calls.arrivals(count) }

  /// Waits for the ends of a number of attempts.
  func ends(_ count: Int) async { await finished.arrivals(count) }

  func entry(forKey key: String) async -> CacheEntry<Int>? { nil }

  func store(_ entries: [String: CacheEntry<Int>]) async throws {
    try await calls.wait()
    let fails = state.withLock { state in
      guard state.failures == 0 else {
        state.failures -= 1
        return true
      }
      state.stored.merge(entries.mapValues(\.value)) { $1 }
      return false
    }
    try await finished.wait()
    if fails { throw Broken() }
  }

  func removeEntries(forKeys keys: Set<String>) async throws {}

  func removeAllEntries() async throws {}
}

/// A cacher whose stores wait at a gate.
private final class SlowCacher: Cacher {
  let gate = Gate()
  private let base = SimpleCacher()

  var values: [String: Int] { base.values }

  func stores(_ count: Int) async { await base.stores(count) }

  func entry(forKey key: String) async throws -> CacheEntry<Int>? {
    try await base.entry(forKey: key)
  }

  func store(_ entries: [String: CacheEntry<Int>]) async throws {
    try await gate.wait()
    try await base.store(entries)
  }

  func removeEntries(forKeys keys: Set<String>) async throws {}

  func removeAllEntries() async throws {}
}
