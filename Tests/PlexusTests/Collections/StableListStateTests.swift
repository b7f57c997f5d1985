import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `A stable list` {
  @Test func `a stable list keeps the order of the remaining elements, like an array`() {
    var random = SeededRandom(seed: 7)
    var roster = StableList<String>()
    var model: [(number: Int, member: String)] = []
    for step in 0..<2_000 {
      // The list grows first, and is empty in the end.
      if Int.random(in: 0..<2_000, using: &random) > step || model.isEmpty {
        model.append((roster.append("\(step)"), "\(step)"))
      } else {
        let left = model.remove(at: Int.random(in: model.indices, using: &random))
        #expect(roster.remove(left.number) == left.member)
        #expect(roster.remove(left.number) == nil)
      }
      #expect(roster.places.compactMap(\.member) == model.map(\.member))
      #expect(roster.isEmpty == model.isEmpty)
      #expect(roster.places.count <= 2 * model.count + 18)
    }
    #expect(roster.remove(0) == nil)
    #expect(roster.remove(.max) == nil)
  }
}
