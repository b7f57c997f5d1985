import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Own removals` {
  private let owner = CacherLedger.Owner(id: 1, part: "a/")

  private func generation(_ number: UInt64, epoch: UInt64 = 7) -> CacheGeneration {
    CacheGeneration(epoch: epoch, number: number)
  }

  @Test(.guarantee(.clearedKeysAreNotWrittenBack))
  func `own removals are skipped if no removal of others came in between`() {
    var removals = CacherLedger.State()
    removals.note(1, by: owner, before: generation(3), after: generation(4))
    removals.note(2, by: owner, before: generation(4), after: generation(6))
    // Another process has removed an entry at the same time.
    removals.note(1, by: owner, before: generation(6), after: generation(8))
    removals.note(1, by: owner, before: generation(8), after: generation(9))
    for (number, expected) in [(2, 2), (3, 6), (4, 6), (5, 6), (6, 6), (7, 7), (8, 9), (9, 9)] {
      let skipped = removals.skipped(by: generation(UInt64(number)), for: owner)
      #expect(skipped == generation(UInt64(expected)))
    }
  }

  @Test func `own removals of another epoch are not skipped`() {
    var removals = CacherLedger.State()
    removals.note(1, by: owner, before: generation(0, epoch: 1), after: generation(1, epoch: 2))
    #expect(removals.skipped(by: generation(0, epoch: 1), for: owner) == generation(0, epoch: 1))
    removals.note(1, by: owner, before: generation(0), after: generation(1))
    #expect(removals.skipped(by: generation(0, epoch: 1), for: owner) == generation(0, epoch: 1))
    #expect(removals.skipped(by: generation(0), for: owner) == generation(1))
    removals.note(1, by: owner, before: generation(5, epoch: 1), after: generation(6, epoch: 2))
    #expect(removals.skipped(by: generation(5, epoch: 2), for: owner) == generation(5, epoch: 2))
  }

  @Test func `own removals that were the first of all are skipped`() {
    var removals = CacherLedger.State()
    removals.note(2, by: owner, before: CacheGeneration(), after: generation(2))
    #expect(removals.skipped(by: CacheGeneration(), for: owner) == generation(2))
    removals = CacherLedger.State()
    removals.note(1, by: owner, before: CacheGeneration(), after: generation(2))
    #expect(removals.skipped(by: CacheGeneration(), for: owner) == CacheGeneration())
  }

  @Test func `own removals are remembered as far as they are recent`() {
    var removals = CacherLedger.State()
    for number in 0..<300 {
      let before = generation(UInt64(10 * number))
      removals.note(1, by: owner, before: before, after: generation(UInt64(10 * number + 1)))
    }
    #expect(removals.skipped(by: generation(430), for: owner) == generation(430))
    #expect(removals.skipped(by: generation(440), for: owner) == generation(441))
  }

  @Test(.guarantee(.mapsClearedTogetherStillWrite))
  func `own removals of caches with other entries are skipped, and those of others are not`() {
    let (other, same) = (
      CacherLedger.Owner(id: 2, part: "b/"), CacherLedger.Owner(id: 3, part: "a/")
    )
    let whole = CacherLedger.Owner(id: 4, part: nil)
    var removals = CacherLedger.State()
    removals.note(1, by: owner, before: CacheGeneration(), after: generation(1))
    removals.note(1, by: other, before: generation(1), after: generation(2))
    removals.note(1, by: owner, before: generation(2), after: generation(3))
    removals.note(1, by: same, before: generation(3), after: generation(4))
    removals.note(1, by: owner, before: generation(4), after: generation(5))
    for first in [CacheGeneration(), generation(0), generation(1), generation(2)] {
      #expect(removals.skipped(by: first, for: owner) == generation(3))
      #expect(removals.skipped(by: first, for: other) == generation(5))
    }
    #expect(removals.skipped(by: generation(3), for: owner) == generation(3))
    #expect(removals.skipped(by: generation(4), for: owner) == generation(5))
    #expect(removals.skipped(by: generation(0), for: whole) == generation(0))
    removals.note(1, by: whole, before: generation(5), after: generation(6))
    #expect(removals.skipped(by: generation(4), for: other) == generation(5))
    #expect(removals.skipped(by: generation(5), for: whole) == generation(6))
  }
}
