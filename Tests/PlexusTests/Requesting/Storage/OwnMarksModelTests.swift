import TestSupport
import Testing

@testable import Plexus

/// Histories of marks and writes against their order, by which entries are judged when they are written.
@Suite struct `The marks of a process against a model` {
  private struct World {
    var state = OwnMarksState()
    var random: SeededRandom
    var time = Duration.seconds(1_000)
    /// The marks so far, in order: the latest number of each subject.
    var order: UInt64 = 0
    var marks: [CacheMark: UInt64] = [:]
    /// The present entry of each name: its tags, its time of storage, and the order since which it is judged.
    var entries: [String: (tags: [CacheTag], storedAt: Duration, start: UInt64, written: UInt64)] =
      [:]
    var history: [String] = []

    /// The time of the clock, which is set back now and then, and often stands still.
    mutating func moveClock() {
      switch Int.random(in: 0..<10, using: &random) {
      case 0: time -= .seconds(Int.random(in: 0..<100, using: &random))
      case 1..<5: time += .nanoseconds(Int.random(in: 0..<2, using: &random))
      default: time += .seconds(Int.random(in: 0..<10, using: &random))
      }
    }

    func latest(_ name: String, _ tags: [CacheTag]) -> (refresh: UInt64, clear: UInt64) {
      let refreshes = [.refreshedKey(name)] + tags.map { CacheMark.refreshedTag($0, prefix: "") }
      let clears = tags.map { CacheMark.clearedTag($0, prefix: "") }
      return (
        refreshes.compactMap { marks[$0] }.max() ?? 0, clears.compactMap { marks[$0] }.max() ?? 0
      )
    }

    func verdict(_ name: String, _ tags: [CacheTag], since start: UInt64) -> OwnMarksState.Verdict {
      let (refresh, clear) = latest(name, tags)
      return clear > start ? .cleared : refresh > start ? .outdated : .usable
    }

    mutating func note(_ mark: CacheMark) {
      history.append("\(mark)")
      order += 1
      marks[mark] = order
      _ = state.note(mark, at: time)
    }

    /// A value is written whose fetch began at some time, and which an update may have changed since.
    mutating func write(_ name: String, _ tags: [CacheTag], changes: [CacheTag]?) throws {
      var start = FetchStart(
        generation: nil,
        order: UInt64.random(in: 0...order, using: &random)
      )
      var expected = start.order
      var isOutdated = verdict(name, tags, since: expected) == .outdated
      let isCleared = verdict(name, tags, since: expected) == .cleared
      var written = tags
      if let changes {
        start = state.renewed(start, name, tags)
        try #require(start.isOutdated == isOutdated, "after \(history)")
        if !isCleared { expected = order }
        if start.isOutdated { note(.refreshedKey(name)) }
        written = changes
      }
      history.append("write \(name) \(written) since \(expected)")
      var storedAt = time - .seconds(Int.random(in: 0..<50, using: &random))
      let isWritten = state.adjust(&storedAt, name, written, since: start.order)
      let present = verdict(name, written, since: expected)
      try #require(isWritten == (present != .cleared), "after \(history)")
      isOutdated = isOutdated && !isCleared
      try #require(changes == nil || !isOutdated || present == .outdated, "after \(history)")
      entries[name] = isWritten ? (written, storedAt, expected, order) : nil
    }

    func check() throws {
      for (name, entry) in entries {
        let verdict = verdict(name, entry.tags, since: entry.start)
        let judged = state.judge(name, entry.tags, storedAt: entry.storedAt)
        try #require(judged == verdict, "\(name) after \(history)")
      }
    }
  }

  @Test(arguments: 0..<300 as Range<UInt64>)
  func `an entry is judged by the order of marks, not by the clock`(seed: UInt64) throws {
    var world = World(random: SeededRandom(seed: seed))
    let tags = (0..<3).map { CacheTag("\($0)") }
    for _ in 0..<60 {
      world.moveClock()
      let name = "\(Int.random(in: 0..<2, using: &world.random))"
      let tag = tags[Int.random(in: 0..<3, using: &world.random)]
      switch Int.random(in: 0..<6, using: &world.random) {
      case 0: world.note(.clearedTag(tag, prefix: ""))
      case 1: world.note(.refreshedTag(tag, prefix: ""))
      case 2: world.note(.refreshedKey(name))
      case 3: try world.write(name, [tag], changes: nil)
      default:
        let other = tags[Int.random(in: 0..<3, using: &world.random)]
        try world.write(name, [tag], changes: [other])
      }
      try world.check()
    }
  }
}
