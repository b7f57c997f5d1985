import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The index of tags` {
  @Test(arguments: 0..<30)
  func `has the keys of each tag, whatever is added and removed`(seed: UInt64) {
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

@Suite(.fewAtOnce) struct `The marks of tags` {
  @Test func `concern what was stored at their time or before`() {
    var marks = TagMarksState()
    marks.refresh(["a"], at: .seconds(10))
    marks.clear(["b"], at: .seconds(20))
    #expect(marks.judge(["a"], storedAt: .seconds(10)) == .outdated)
    #expect(marks.judge(["a"], storedAt: .seconds(11)) == .usable)
    #expect(marks.judge(["a", "b"], storedAt: .seconds(20)) == .cleared)
    #expect(marks.judge(["c"], storedAt: .zero) == .usable)
    #expect(marks.judge([], storedAt: .zero) == .usable)
    marks.clear(["b"], at: .seconds(5))
    #expect(marks.judge(["b"], storedAt: .seconds(20)) == .cleared)
  }

  @Test func `that are too many are combined, and restore nothing`() {
    var marks = TagMarksState()
    for number in 0...TagMarksState.limit {
      marks.clear([CacheTag("\(number)")], at: .seconds(number))
    }
    let last = Duration.seconds(TagMarksState.limit)
    #expect(marks.judge(["0"], storedAt: .zero) == .cleared)
    #expect(marks.judge(["other"], storedAt: last) == .cleared)
    #expect(marks.judge(["other"], storedAt: last + .seconds(1)) == .usable)
    #expect(marks.judge([], storedAt: .zero) == .usable)
  }
}
