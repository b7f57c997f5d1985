import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A cacher that does not return` {
  let cacher = ControlledCacher<Int>()
  let clock = ManualClock()

  private func cache(
    _ kind: CacheKind,
    timeout: Duration = .seconds(2)
  ) -> CacheUnderTest<Int> {
    let tally = Tally()
    let policy = CachePolicy(cacherRead: .beforeFetch, storageTimeout: timeout)
    return kind.make(storedIn: cacher, policy: policy, clock: clock) { tally.increment() }
  }

  /// Lets a call of the cacher exceed the time limit of the policy, and returns the error of the operation.
  private func giveUp(
    _ gate: Gate,
    _ operation: @escaping @concurrent @Sendable () async throws -> Void
  ) async -> (any Error)? {
    let task = begin { try await operation() }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(2))
    return await #expect(throws: (any Error).self) { try await task.value }
  }

  @Test func `a cacher has five seconds to return by default`() {
    #expect(CachePolicy().storageTimeout == .seconds(5))
  }

  @Test(.guarantee(.hangingCachersAreMisses), arguments: CacheKind.allCases)
  func `a cacher that does not return is a miss after the storage timeout`(
    kind: CacheKind
  ) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(10))
    let gate = cacher.hold(.read)
    let cache = cache(kind)
    let caller = begin { try await cache.response() }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(2))
    let response = try await caller.value
    #expect(response.value == 1)
    #expect(response.source == .fetch)
    #expect(cache.statistics.cacherErrors == 1)
    gate.open()
  }

  @Test(arguments: CacheKind.allCases)
  func `a cacher that does not return is a miss also when the fetch has failed`(
    kind: CacheKind
  ) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(10))
    let gate = cacher.hold(.read)
    let cache = kind.make(storedIn: cacher, clock: clock) { throw Offline() }
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(5))
    await #expect(throws: Offline.self) { try await caller.value }
    gate.open()
  }

  @Test(.guarantee(.hangingCachersAreMisses))
  func `a hanging cacher is not read for thirty seconds, and then by one call until it returns`()
    async throws
  {
    for key in 0..<9 { cacher.entries["\(key)"] = CacheEntry(7, age: .seconds(10)) }
    let policy = CachePolicy(cacherRead: .beforeFetch, storageTimeout: .seconds(2))
    let map = MultiplexerMap<Int, Int>(policy: policy, cacher: cacher, clock: clock) { $0 }
    let gate = cacher.hold(.read)
    let first = begin { try await map.request(1) }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(2))
    #expect(try await first.value == 1)
    clock.advance(by: .seconds(29))
    #expect(try await map.request(2) == 2)
    #expect(cacher.count(of: .read) == 1)
    clock.advance(by: .seconds(1))
    let probe = begin { try await map.request(3) }
    while cacher.count(of: .read) < 2 { await Task.detached {}.value }
    #expect(try await map.request(4) == 4)
    #expect(cacher.count(of: .read) == 2)
    gate.open()
    #expect(try await probe.value == 7)
    #expect(try await map.request(5) == 7)
  }

  @Test(.guarantee(.hangingCachersAreMisses), arguments: CacheKind.allCases)
  func `the generation of a hanging cacher is not read for thirty seconds`(
    kind: CacheKind
  ) async throws {
    cacher.setGeneration(5)
    let cache = cache(kind)
    cache.store(7)
    let gate = cacher.hold(.store)
    _ = await giveUp(gate) { try await cache.flush() }
    cacher.setGeneration(6)
    let count = cacher.generationReads
    #expect(try await cache.refresh().request() == 1)
    clock.advance(by: .seconds(29))
    cache.store(8)
    #expect(cacher.generationReads == count)
    cacher.release()
    gate.open()
    while (try? await cache.flush()) == nil { await Task.detached {}.value }
    #expect(cacher.entries["key"]?.generation?.number == 5, "It may be too old, and never too new")
    clock.advance(by: .seconds(1))
    cache.store(9)
    try await cache.flush()
    #expect(cacher.entries["key"]?.generation?.number == 6)
  }

  @Test(.guarantee(.flushAndClearThrowForHangingCachers), arguments: CacheKind.allCases)
  func `a flush into a hanging cacher reports the keys, which the next flush writes`(
    kind: CacheKind
  ) async throws {
    let cache = cache(kind)
    cache.store(7)
    let gate = cacher.hold(.store)
    let error = await giveUp(gate) { try await cache.flush() }
    let failure = try #require((error as? CacherError)?.failures["key"] as? MultiplexerError)
    #expect(failure == .storageTimedOut(after: .seconds(2)))
    #expect(failure.description.contains("storageTimeout"))
    await #expect(throws: CacherError.self) { try await cache.flush() }
    #expect(cacher.count(of: .store) == 1, "The first write could replace what is written now")
    gate.open()
    while cacher.value() == nil { await Task.detached {}.value }
    cache.store(8)
    // The abandoned write has taken effect, and is about to be recorded as returned.
    while (try? await cache.flush()) == nil { await Task.detached {}.value }
    #expect(cacher.value() == 8)
  }

  @Test(
    .guarantee(.flushAndClearThrowForHangingCachers),
    arguments: CacheKind.allCases,
    [false, true]
  )
  func `a clear of a hanging cacher throws, and its copy is never used and is removed again`(
    kind: CacheKind,
    all: Bool
  ) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(10))
    let cache = cache(kind)
    let gate = all && kind == .map ? cacher.hold(.removeAll) : cacher.hold(.remove)
    let error = await giveUp(gate) {
      if all { try await cache.clearAll() } else { try await cache.clear() }
    }
    let failure = (error as? CacherError)?.failures["key"] ?? error
    #expect(failure as? MultiplexerError == .storageTimedOut(after: .seconds(2)))
    #expect(try await cache.request() == 1)
    #expect(cacher.count(of: .read) == 0)
    cacher.release()
    try await cache.clear()
    #expect(cacher.entries.isEmpty)
    gate.open()
  }

  @Test(
    .guarantee(.flushAndClearThrowForHangingCachers),
    arguments: CacheKind.allCases,
    [false, true]
  )
  func `an abandoned write restores nothing that was cleared`(
    kind: CacheKind,
    all: Bool
  ) async throws {
    let cache = cache(kind)
    cache.store(7)
    let gate = cacher.hold(.store)
    _ = await giveUp(gate) { try await cache.flush() }
    await #expect(throws: (any Error).self, "The write may still bring the copy back") {
      if all { try await cache.clearAll() } else { try await cache.clear() }
    }
    #expect(try await cache.request() == 1)
    let removal: ControlledCacher<Int>.Operation = all && kind == .map ? .removeAll : .remove
    let count = cacher.count(of: removal)
    gate.open()
    // Automatically, once the write has returned.
    while cacher.count(of: removal) == count { await Task.detached {}.value }
    cache.clearMemory()
    try await cache.flush()
    #expect(cacher.value() == 1)
    #expect(try await cache.request() != 7)
  }

  @Test func `a read that hangs delays no other key`() async throws {
    let policy = CachePolicy(cacherRead: .beforeFetch, storageTimeout: .seconds(2))
    let map = MultiplexerMap<Int, Int>(policy: policy, cacher: cacher, clock: clock) { $0 }
    let gate = Gate()
    cacher.onCall { if $0.keys == ["1"] { await waitUnmoved(gate) } }
    let slow = begin { try await map.request(1) }
    await gate.arrivals(1)
    #expect(try await map.request(2) == 2)
    gate.open()
    #expect(try await slow.value == 1)
  }

  @Test
  func `a cacher that stores by requesting a key whose read flushes does not wait without end`()
    async throws
  {
    let policy = CachePolicy(cacherRead: .beforeFetch, storageTimeout: .seconds(2))
    let map = MultiplexerMap<Int, Int>(policy: policy, cacher: cacher, clock: clock) { $0 }
    let reads = Gate()
    cacher.onCall { [weak map] call in
      switch call.operation {
      case .store where call.keys == ["1"]: _ = try await map?.request(2)
      case .read where call.keys == ["2"]:
        try await reads.wait()
        try await map?.flush()
      default: break
      }
    }
    map.store(7, for: 1)
    let flushing = begin { try await map.flush() }
    await reads.arrivals(1)
    reads.open()
    // The time limits of the write, and of the read that waits for it.
    await clock.sleepers(2)
    clock.advance(by: .seconds(2))
    _ = await flushing.result
    #expect(try await map.request(2) == 2)
    while (try? await map.flush()) == nil { await Task.detached {}.value }
    #expect(cacher.value("1") == 7)
  }
}
