import TestSupport
import Testing

@testable import Plexus

@Suite("The limits of the readers of a window") struct WindowLimitsStateTests {
  @Test func `the largest limit is that of the readers that are left`() {
    var random = SeededRandom(seed: 7)
    for _ in 0..<200 {
      var limits = HubBase.WindowLimits()
      var expected: [Int] = []
      for _ in 0..<40 {
        if expected.isEmpty || Bool.random(using: &random) {
          let limit = Int.random(in: 1...4, using: &random)
          limits.insert(limit)
          expected.append(limit)
        } else {
          let limit = expected.remove(at: Int.random(in: expected.indices, using: &random))
          limits.remove(limit)
        }
        #expect(limits.largest == expected.max() ?? 0)
      }
    }
  }
}
