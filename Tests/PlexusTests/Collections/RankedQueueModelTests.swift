import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `A queue of ranks` {
  @Test func `a queue of ranks gives its ids from the highest one, and knows the lowest one`() {
    var queue = RankedQueue<String, Int>(findsLowest: true)
    for (id, rank) in [("b", 2), ("d", 4), ("a", 1), ("c", 3)] { queue.insert(id, rank) }
    queue.insert("a", 5)
    #expect(queue.findLowest()?.id == "b")
    #expect(queue.remove("b") == 2)
    #expect(queue.remove("b") == nil)
    #expect(queue.findLowest()?.id == "c")
    #expect(queue["a"] == 5)
    var order: [String] = []
    while let next = queue.popHighest() { order.append(next.id) }
    #expect(order == ["a", "d", "c"])
    #expect(queue.findLowest() == nil)
    #expect(queue.count == 0)
  }

  @Test(arguments: UInt64(0)..<20)
  func `a queue of ranks is a sorted list, after any history`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var queue = RankedQueue<Int, Int>(findsLowest: true)
    var model: [Int: Int] = [:]
    for _ in 0..<2_000 {
      let id = Int.random(in: 0..<60, using: &random)
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<6:
        // A unique rank, to which it can return.
        let rank = 60 * Int.random(in: 0..<4, using: &random) + id
        queue.insert(id, rank)
        model[id] = rank
      case 6..<8: #expect(queue.remove(id) == model.removeValue(forKey: id))
      default:
        let highest = model.max { $0.value < $1.value }
        let next = queue.popHighest()
        #expect(next?.id == highest?.key && next?.rank == highest?.value)
        if let highest { model[highest.key] = nil }
      }
      #expect(queue.findLowest()?.id == model.min { $0.value < $1.value }?.key)
      #expect(queue.count == model.count)
      #expect(queue[id] == model[id])
    }
  }

  @Test func `a queue of ranks is fast for very many ids, in whatever order they come and go`() {
    var random = SeededRandom(seed: 1)
    let count = 50_000
    let ids = (0..<count).shuffled(using: &random)
    var queue = RankedQueue<Int, Int>(findsLowest: true)
    for id in 0..<count { queue.insert(id, -id) }
    for id in ids { queue.insert(id, count - id) }
    for id in ids.prefix(count / 2) { _ = queue.remove(id) }
    var last = Int.max
    while let next = queue.popHighest() {
      if next.rank >= last { Issue.record("\(next.rank) after \(last)") }
      last = next.rank
    }
    #expect(queue.count == 0)
  }
}
