import Plexus
import PlexusTesting
import TestSupport
import Testing

/// A value that is counted while it is alive.
private final class Counted: Sendable {
  private let living: Tally

  init(_ living: Tally) {
    self.living = living
    living.increment()
  }

  deinit { living.decrement() }
}

@Suite(.fewAtOnce) struct `Memory that is bounded, with a cacher` {
  @Test(
    .guarantee(.slowCachersKeepMemoryBounded),
    arguments: [CacheCapacity<Counted>.count(32), .cost(64, of: { _ in 2 })]
  )
  private func `bounded memory stays bounded while the cacher does not return`(
    capacity: CacheCapacity<Counted>
  ) async throws {
    let cacher = ControlledCacher<Counted>()
    let living = Tally()
    let map = MultiplexerMap<Int, Counted>(
      policy: CachePolicy(cacherRead: .beforeFetch),
      capacity: capacity,
      cacher: cacher,
      clock: ManualClock()
    ) { _ in Counted(living) }
    let gate = cacher.hold(.store)
    for key in 0..<40_000 { map.store(Counted(living), for: key) }
    #expect(living.value < 20_000)
    gate.open()
    // It names the values that were given up.
    let error = try await #require(throws: CacherError.self) { try await map.flush() }
    let lost = error.failures.values.compactMap { $0 as? MultiplexerError }
    #expect(lost.count > 1_000 && lost.allSatisfy { $0 == .storageOverloaded })
    #expect(error.failures.keys.allSatisfy { cacher.entries[$0] == nil })
    #expect(cacher.entries.count < 20_000)
  }

  @Test(.guarantee(.slowCachersKeepMemoryBounded))
  func `clearing bounded memory with a cacher gives up no value`()
    async throws
  {
    let cacher = ControlledCacher<Int>()
    let map = MultiplexerMap<Int, Int>(capacity: .count(500), cacher: cacher) { $0 }
    for key in 0..<500 { map.store(key, for: key) }
    map.clearMemory()
    try await map.flush()
    #expect(cacher.entries.count == 500)
  }
}
