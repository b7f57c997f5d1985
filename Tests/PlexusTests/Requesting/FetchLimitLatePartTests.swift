import Plexus
import PlexusTesting
import TestSupport
import Testing

/// A cacher without entries, whose reads wait at a gate for each key.
final class GatedReads: Cacher {
  let gates = Guarded<[String: Gate]>([:])
  let reads = Log<String>()

  func gate(_ key: String) -> Gate {
    gates.withLock { gates in
      let gate = gates[key] ?? Gate()
      gates[key] = gate
      return gate
    }
  }

  func entry(forKey key: String) async throws -> CacheEntry<Int>? {
    reads.append(key)
    try await gate(key).wait()
    return nil
  }

  func store(_ entries: [String: CacheEntry<Int>]) async throws {}
  func removeEntries(forKeys keys: Set<String>) async throws {}
  func removeAllEntries() async throws {}
}

/// A fetch of several keys that has begun without some of them, whose stored copies were read later.
@Suite(.fewAtOnce) struct `The late part of a limited bulk fetch` {
  let clock = ManualClock()
  let origin = LimitedOrigin()

  private func until(_ isTrue: () -> Bool) async {
    while !isTrue() { await Task.detached {}.value }
  }

  private func lateMap(
    waiting: Int? = nil,
    _ cacher: GatedReads
  ) -> MultiplexerMap<Int, Int> {
    let policy = LimitedOrigin.policy(1, waiting: waiting) { $0.cacherRead = .beforeFetch }
    return MultiplexerMap<Int, Int>.bulk(
      id: "rows",
      policy: policy,
      cacher: cacher,
      clock: clock
    ) { [origin] keys in
      var values: [Int: Int] = [:]
      for key in keys { values[key] = try await origin.fetch(key) }
      return values
    }
  }

  /// Lets the first key be fetched without the second one, whose copy is read later, and the third one run.
  private func beginLate(
    _ map: MultiplexerMap<Int, Int>,
    _ cacher: GatedReads,
    _ start: () -> Void
  ) async -> Task<Int, any Error> {
    // Copies of these keys are not read.
    for key in [1, 8, 9] {
      map.store(0, for: key)
      map.refresh(key)
    }
    start()
    await cacher.reads.first(1)
    let deadline = clock.now.advanced(by: .milliseconds(50))
    await until { clock.nextDeadline == deadline }
    clock.advance(by: .milliseconds(50))
    await origin.begins(1)
    origin.gate(1).open()
    await until { map.statistics.running == 0 }
    let busy = begin { try await map.request(9) }
    await origin.begins(2)
    for key in cacher.reads.entries { cacher.gate(key).open() }
    await until { map.statistics.waiting == 1 }
    return busy
  }

  @Test func `a caller moves the late part of a bulk fetch forward`() async throws {
    let cacher = GatedReads()
    let map = lateMap(cacher)
    let busy = await beginLate(map, cacher) { map.prefetch([1, 2]) }
    let joined = begin { try await map.request(2) }
    let later = begin { try await map.request(8) }
    await until { map.statistics.waiting == 2 }
    for key in [2, 8, 9] { origin.gate(key).open() }
    _ = try await (busy.value, joined.value, later.value)
    #expect(origin.begun == [1, 9, 2, 8])
  }

  @Test func `a caller of the late part of a bulk fetch makes no room for others`() async throws {
    let cacher = GatedReads()
    let map = lateMap(waiting: 1, cacher)
    let busy = await beginLate(map, cacher) { map.prefetch([1, 2]) }
    let joined = begin { try await map.request(2) }
    let later = begin { try await map.request(8) }
    await until { map.statistics.waiting == 1 }
    await #expect(throws: MultiplexerError.overloaded) { try await later.value }
    for key in [2, 8, 9] { origin.gate(key).open() }
    _ = try await busy.value
    #expect((try? await joined.value) == 102)
  }

  @Test func `the last caller of the late part of a bulk fetch takes it along`() async throws {
    let cacher = GatedReads()
    let map = lateMap(cacher)
    let task = Guarded<Task<Int, any Error>?>(nil)
    let busy = await beginLate(map, cacher) {
      task.withLock { $0 = begin { await map.request([1, 2]).count } }
    }
    task.withLock { $0 }?.cancel()
    _ = await task.withLock { $0 }?.result
    #expect(map.statistics.waiting == 0)
    for key in [2, 8, 9] { origin.gate(key).open() }
    _ = try await busy.value
    #expect(origin.begun == [1, 9])
  }

  @Test func `the late part of a bulk fetch has the priority of its callers`() async throws {
    let cacher = GatedReads()
    let map = lateMap(cacher)
    let task = Guarded<Task<Int, any Error>?>(nil)
    let busy = await beginLate(map, cacher) {
      task.withLock { $0 = begin(priority: .high) { await map.request([1, 2]).count } }
    }
    let later = begin(priority: .background) { try await map.request(8) }
    await until { map.statistics.waiting == 2 }
    for key in [2, 8, 9] { origin.gate(key).open() }
    let first = task.withLock { $0 }
    _ = try await (busy.value, later.value, first?.value)
    #expect(origin.begun == [1, 9, 2, 8])
  }
}
