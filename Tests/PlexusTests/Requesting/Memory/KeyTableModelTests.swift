import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `A key table` {
  @Test(arguments: [UInt64.max, 0xFF, 0xF_0000_0000, 0])
  func `a key table holds what a dictionary would hold after any history`(mask: UInt64) {
    // The fewer bits of the hash are used, the more keys collide.
    var random = SeededRandom(seed: mask &+ 7)
    var table = KeyTable<Int, Int>()
    var model: [Int: Int] = [:]
    func hash(_ key: Int) -> UInt64 { KeyHasher(seed: 1).hash(key) & mask }

    for step in 0..<6_000 {
      let key = Int.random(in: 0..<300, using: &random)
      let isGrowing = step / 1_000 % 2 == 0
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<(isGrowing ? 7 : 2):
        if let index = table.index(of: key, hash: hash(key)) {
          table.entries[index].element = step
        } else {
          let index = table.insert(step, for: key, hash: hash(key))
          #expect(table.entries[index].key == key)
        }
        model[key] = step
      case 9 where step % 500 == 0:
        #expect(table.removeAll().count == model.count)
        model = [:]
      default:
        let index = table.index(of: key, hash: hash(key))
        #expect((index == nil) == (model[key] == nil))
        if let index {
          let removed = table.remove(at: index)
          #expect(removed.key == key)
          #expect(removed.element == model.removeValue(forKey: key))
        }
      }
      if step % 50 == 0 { compare(table, with: model, hash: hash) }
    }
    compare(table, with: model, hash: hash)
  }

  private func compare(
    _ table: KeyTable<Int, Int>,
    with model: [Int: Int],
    hash: (Int) -> UInt64
  ) {
    #expect(table.count == model.count)
    #expect(table.isEmpty == model.isEmpty)
    for key in 0..<300 {
      let index = table.index(of: key, hash: hash(key))
      #expect(index.map { table.entries[$0].element } == model[key])
    }
  }

  @Test func `a key table gives its memory back when it gets empty`() {
    var table = KeyTable<Int, Int>()
    let hasher = KeyHasher()
    for key in 0..<100_000 { _ = table.insert(key, for: key, hash: hasher.hash(key)) }
    #expect(table.slots.count == 262_144)
    for key in 0..<99_900 {
      guard let index = table.index(of: key, hash: hasher.hash(key)) else { continue }
      _ = table.remove(at: index)
    }
    #expect(table.slots.count <= 1_024)
    #expect(table.entries.capacity <= 2_048)
    #expect((99_900..<100_000).allSatisfy { table.index(of: $0, hash: hasher.hash($0)) != nil })
    _ = table.removeAll()
    #expect(table.slots.isEmpty)
    #expect(table.entries.capacity == 0)
  }

  @Test func `a key table does not slow down when keys are added and removed`() {
    var table = KeyTable<Int, Int>()
    let hasher = KeyHasher()
    for key in 0..<1_000 { _ = table.insert(key, for: key, hash: hasher.hash(key)) }
    let slots = table.slots.count
    for key in 1_000..<100_000 {
      _ = table.insert(key, for: key, hash: hasher.hash(key))
      guard let index = table.index(of: key - 1_000, hash: hasher.hash(key - 1_000)) else {
        Issue.record("\(key - 1_000) was lost")
        return
      }
      _ = table.remove(at: index)
    }
    #expect(table.slots.count == slots)
    #expect(table.slots.count { $0 != 0 } == 1_000, "Removed keys leave no gravestones")
  }

  @Test func `an empty key table looks up nothing`() {
    #expect(KeyTable<String, Int>().index(of: "a", hash: 7) == nil)
  }
}
