import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Own removals` {
  private func generation(_ number: UInt64, epoch: UInt64 = 7) -> CacheGeneration {
    CacheGeneration(epoch: epoch, number: number)
  }

  @Test func `are skipped if no removal of others came in between`() {
    var removals = OwnRemovals()
    removals.note(1, before: generation(3), after: generation(4))
    removals.note(2, before: generation(4), after: generation(6))
    // Another process has removed an entry at the same time.
    removals.note(1, before: generation(6), after: generation(8))
    removals.note(1, before: generation(8), after: generation(9))
    for (number, expected) in [(2, 2), (3, 6), (4, 6), (5, 6), (6, 6), (7, 7), (8, 9), (9, 9)] {
      let skipped = removals.skipped(by: generation(UInt64(number)))
      #expect(skipped == generation(UInt64(expected)))
    }
  }

  @Test func `of another epoch are not skipped`() {
    var removals = OwnRemovals()
    removals.note(1, before: generation(0, epoch: 1), after: generation(1, epoch: 2))
    #expect(removals.skipped(by: generation(0, epoch: 1)) == generation(0, epoch: 1))
    removals.note(1, before: generation(0), after: generation(1))
    #expect(removals.skipped(by: generation(0, epoch: 1)) == generation(0, epoch: 1))
    #expect(removals.skipped(by: generation(0)) == generation(1))
    removals.note(1, before: generation(5, epoch: 1), after: generation(6, epoch: 2))
    #expect(removals.skipped(by: generation(5, epoch: 2)) == generation(5, epoch: 2))
  }

  @Test func `that were the first of all are skipped`() {
    var removals = OwnRemovals()
    removals.note(2, before: CacheGeneration(), after: generation(2))
    #expect(removals.skipped(by: CacheGeneration()) == generation(2))
    removals = OwnRemovals()
    removals.note(1, before: CacheGeneration(), after: generation(2))
    #expect(removals.skipped(by: CacheGeneration()) == CacheGeneration())
  }

  @Test func `are remembered as far as they are recent`() {
    var removals = OwnRemovals()
    for number in 0..<100 {
      let before = generation(UInt64(10 * number))
      removals.note(1, before: before, after: generation(UInt64(10 * number + 1)))
    }
    #expect(removals.skipped(by: generation(350)) == generation(350))
    #expect(removals.skipped(by: generation(360)) == generation(361))
  }
}
