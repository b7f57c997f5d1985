import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The index of tags` {
  @Test(arguments: 0..<30)
  func `the index of tags has the keys of each tag, whatever is added and removed`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var index = TagIndex<Int>()
    var known: [Int: [CacheTag]] = [:]
    func hash(_ key: Int) -> UInt64 { UInt64(key % 5) }
    for _ in 0..<400 {
      let key = Int.random(in: 0..<20, using: &random)
      if known[key] == nil {
        let tags = (0..<3).map { _ in CacheTag("\(Int.random(in: 0..<4, using: &random))") }
        index.insert(key, hash: hash(key), tags: tags)
        known[key] = tags
      } else {
        index.remove(key, hash: hash(key))
        known[key] = nil
      }
      for number in 0..<4 {
        let tag = CacheTag("\(number)")
        let keys = index.keys(of: [tag]).map(\.key)
        #expect(keys.sorted() == known.filter { $0.value.contains(tag) }.keys.sorted())
      }
    }
    for key in known.keys { index.remove(key, hash: hash(key)) }
    #expect(index.isEmpty)
  }
}

extension `The index of tags` {
  @Test(arguments: 0..<30)
  func `the index of tags has the tags of the values of each key, and of those below`(seed: UInt64)
  {
    var random = SeededRandom(seed: seed)
    var index = TagIndex<Int>()
    var known: [Int: (current: Set<CacheTag>, former: Set<CacheTag>)] = [:]
    func hash(_ key: Int) -> UInt64 { UInt64(key % 5) }
    for _ in 0..<400 {
      let key = Int.random(in: 0..<10, using: &random)
      let tags = (0..<Int.random(in: 0..<4, using: &random)).map { _ in
        CacheTag("\(Int.random(in: 0..<6, using: &random))")
      }
      let old = known[key] ?? ([], [])
      switch Int.random(in: 0..<8, using: &random) {
      case 0..<4:
        index.replace(key, hash: hash(key), tags: tags, below: nil)
        known[key] = (Set(tags), [])
      case 4..<6:
        index.replace(key, hash: hash(key), tags: tags, below: Array(tags.prefix(1)) + ["0"])
        known[key] = (Set(tags), old.current.union(old.former).union(["0"]))
      case 6:
        index.removeFormer(key, hash: hash(key))
        known[key] = (old.current, [])
      default:
        index.remove(key, hash: hash(key))
        known[key] = nil
      }
      for number in 0..<6 {
        let tag = CacheTag("\(number)")
        let keys = index.keys(of: [tag]).map(\.key)
        let expected = known.filter { $0.value.current.union($0.value.former).contains(tag) }.keys
        #expect(keys.sorted() == expected.sorted())
      }
    }
    for key in known.keys { index.remove(key, hash: hash(key)) }
    #expect(index.isEmpty)
  }
}

@Suite(.fewAtOnce) struct `The marks of tags` {
  @Test func `the marks of tags judge the result of a fetch by the order of its start`() {
    var marks = OwnMarksState()
    marks.clear("a", at: 10)
    _ = marks.note(.refreshedTag("b", prefix: ""), at: .zero)
    #expect(marks.judge("", ["a", "b"], since: 0) == .cleared)
    #expect(marks.judge("", ["a", "b"], since: 1) == .outdated)
    #expect(marks.judge("", ["a", "b"], since: 2) == .usable)
    #expect(marks.judge("", ["c"], since: 0) == .usable)
    for number in 0...OwnMarksState.limit { marks.clear(CacheTag("\(number)"), at: 0) }
    #expect(marks.judge("", ["c"], since: 2) == .cleared, "Combined")
    #expect(marks.judge("", ["c"], since: marks.lastOrder) == .usable)
  }

  @Test func `the marks of tags concern what was stored at their time or before`() {
    var marks = OwnMarksState()
    _ = marks.note(.refreshedTag("a", prefix: ""), at: .seconds(10))
    marks.clear("b", at: 20)
    #expect(marks.judge(["a"], storedAt: 10) == .outdated)
    #expect(marks.judge(["a"], storedAt: 11) == .usable)
    #expect(marks.judge(["a", "b"], storedAt: 20) == .cleared)
    #expect(marks.judge(["c"], storedAt: 0) == .usable)
    #expect(marks.judge([], storedAt: 0) == .usable)
    marks.clear("b", at: 5)
    #expect(marks.judge(["b"], storedAt: 20) == .cleared)
  }

  @Test(.guarantee(.tagsClearTogether))
  func `too many marks of tags are combined, and restore nothing`() {
    var marks = OwnMarksState()
    for number in 0...OwnMarksState.limit { marks.clear(CacheTag("\(number)"), at: number) }
    #expect(marks.judge(["0"], storedAt: 0) == .cleared)
    #expect(marks.judge(["other"], storedAt: OwnMarksState.limit) == .cleared)
    #expect(marks.judge(["other"], storedAt: OwnMarksState.limit + 1) == .usable)
    #expect(marks.judge([], storedAt: 0) == .usable)
  }

  @Test func `the marks of tags concern their namespace only`() {
    var marks = OwnMarksState()
    _ = marks.note(.refreshedPrefix("a/"), at: .seconds(10))
    _ = marks.note(.clearedTag("t", prefix: "a/"), at: .seconds(10))
    #expect(marks.judge("a/1", [], storedAt: .zero) == .outdated)
    #expect(marks.judge("a/1", ["t"], storedAt: .zero) == .cleared)
    #expect(marks.judge("b/1", ["t"], storedAt: .zero) == .usable)
    #expect(marks.judge("1", ["t"], storedAt: .zero) == .usable)
  }

  @Test func `the marks of tags order what is written, whatever the clock says`() {
    var marks = OwnMarksState()
    _ = marks.note(.refreshedKey("name"), at: .seconds(10))
    var (early, late) = (Duration.seconds(100), Duration.seconds(1))
    var isWritten = marks.adjust(&early, "name", [], since: 0)
    #expect(isWritten && marks.judge("name", [], storedAt: early) == .outdated)
    isWritten = marks.adjust(&late, "name", [], since: 1)
    #expect(isWritten && marks.judge("name", [], storedAt: late) == .usable)
    marks.clear("t", at: 1)
    isWritten = marks.adjust(&late, "name", ["t"], since: 1)
    #expect(!isWritten)
    #expect(marks.judge(["t"], storedAt: 11) == .usable)
    #expect(marks.judge("name", ["t"], storedAt: late) == .cleared)
  }

  @Test func `marks of tags that were written to the cacher are skipped by newer values`() {
    var marks = OwnMarksState()
    var generation = CacheGeneration(epoch: 7, number: 3)
    generation.marks = 12
    marks.noteWritten([1, 4], generation)
    generation.marks = 10
    for (order, expected) in [(0, 10), (1, 11), (3, 11), (4, 12), (9, 12)] {
      #expect(marks.skipped(by: generation, since: UInt64(order)).marks == UInt64(expected))
    }
    // Another process has noted marks before these.
    generation.marks = 9
    #expect(marks.skipped(by: generation, since: 9) == generation)
  }
}

extension OwnMarksState {
  fileprivate mutating func clear(_ tag: CacheTag, at seconds: Int) {
    _ = note(.clearedTag(tag, prefix: ""), at: .seconds(seconds))
  }

  fileprivate func judge(_ tags: [CacheTag], storedAt seconds: Int) -> OwnMarksState.Verdict {
    judge("name", tags, storedAt: .seconds(seconds))
  }
}
