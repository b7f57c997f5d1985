import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The core of a state consumer` {
  @Test func `ignores what comes late from what was followed before`() {
    let core = ConsumerCore<Int>(nil)
    let told = Log<Int>()
    let call = ConsumerEntry<Int, Int>.Call(fire: { told.append($0.new) }, end: {})
    core.add(ConsumerEntry({ $0 }, firesImmediately: false, call: call), in: nil)
    let (first, second) = (Store<Int, Int>(1) { $0 = $1 }, Store<Int, Int>(2) { $0 = $1 })
    core.follow(first)
    core.follow(second)
    // Received from the first source before it was replaced, and evaluated only now.
    core.consume(3, from: 1)
    core.consume(4, from: 2)
    core.consume(5)
    #expect(told.entries == [1, 2, 4, 5])
    core.close()
    core.consume(6, from: 2)
    #expect(told.count == 4)
  }
}
