import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Random histories of changes, flushes, clears, failures and releases, from several threads.
@Suite(.fewAtOnce) struct `Histories of saved states` {
  @Test(.guarantee(.savedHistoriesEndRight), arguments: 0..<40 as Range<UInt64>)
  func `a saved state ends with the last change since the last clear, or with none`(
    seed: UInt64
  )
    async throws
  {
    let (clock, cacher, number) = (ManualClock(), ControlledCacher<Int>(), CurrentValue(0))
    var random = SeededRandom(seed: seed)
    var saved: SavedState? = number.persist(in: cacher, as: "key", clock: clock)
    // The newest number that a clear has removed.
    var cleared = 0
    for step in 1...60 {
      switch Int.random(in: 0..<9, using: &random) {
      case 0, 1, 2:
        number.value = step
      case 3:
        clock.advance(by: .milliseconds(Int.random(in: 1...2_000, using: &random)))
      case 4:
        try? await saved?.flush()
      case 5:
        cacher.fail(Bool.random(using: &random) ? .store : .remove)
      case 6:
        cacher.mend()
      case 7:
        let last = number.value
        let isCleared: Void? = try? await saved?.clear()
        cleared = last
        if isCleared != nil { #expect(cacher.value() == nil, "seed \(seed), step \(step)") }
      default:
        saved = nil
        saved = number.persist(in: cacher, as: "key", clock: clock)
        // What the former one did not save is its own to save; the new one begins with the next change.
        if number.value > cleared { number.value = number.value }
      }
    }
    cacher.mend()
    try await saved?.flush()
    let isChanged = number.value > cleared
    if !isChanged { try await saved?.clear() }
    #expect(cacher.value() == (isChanged ? number.value : nil), "seed \(seed)")
  }

  @Test(.guarantee(.savedHistoriesEndRight))
  func `nothing from before a clear is stored after it, whatever other threads do`() async throws {
    let (clock, cacher, number) = (ManualClock(), ControlledCacher<Int>(), CurrentValue(0))
    let saved = number.persist(in: cacher, as: "key", delay: .zero, clock: clock)
    try await withThrowingTaskGroup { group in
      for _ in 0..<2 {
        group.addTask { for _ in 0..<300 { number.update { $0 += 1 } } }
        group.addTask { for _ in 0..<100 { try await saved.flush() } }
      }
      group.addTask {
        for _ in 0..<100 {
          let before = number.value
          try await saved.clear()
          let stored = cacher.value() ?? .max
          #expect(stored > before, "\(stored) is from before the clear of \(before)")
        }
      }
      try await group.waitForAll()
    }
    try await saved.clear()
    #expect(cacher.value() == nil)
    number.update { $0 += 1 }
    try await saved.flush()
    #expect(cacher.value() == number.value)
  }
}
