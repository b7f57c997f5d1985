import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The core of a state consumer` {
  @Test(.guarantee(.lateResultsHaveNoEffect))
  func `the core of a state consumer ignores what comes late from what was followed before`() async
  {
    let core = ConsumerCore<Int>(nil)
    let told = Log<Int>()
    let looks = Log<Int>()
    core.add(
      { state in
        looks.append(state)
        return state
      },
      firesImmediately: false,
      in: nil,
      Handler.Recipe(ofChanges: { (_: Int?, new: Int) in told.append(new) })
    )
    let (first, second) = (Store<Int, Int>(1) { $0 = $1 }, Store<Int, Int>(2) { $0 = $1 })
    core.follow(first)
    core.follow(second)
    // Received from the first source before it was replaced, and evaluated only now.
    core.consume(3, from: 1)
    core.consume(4, from: 2)
    core.consume(5)
    #expect(looks.entries == [1, 2, 4, 5])
    #expect(await told.first(4) == [1, 2, 4, 5])
    core.close()
    core.consume(6, from: 2)
    #expect(looks.count == 4)
  }

  @Test
  func `the core of a state consumer releases a selector that is removed before the first state`() {
    let core = ConsumerCore<Int>(nil)
    let bag = ObservationBag()
    weak var selecting: Owner?
    weak var calling: Owner?
    do {
      let (first, second) = (Owner(), Owner())
      (selecting, calling) = (first, second)
      core.add(
        { state in withExtendedLifetime(first) { state } },
        firesImmediately: true,
        in: bag,
        Handler.Recipe(ofChanges: { (_: Int?, _: Int) in withExtendedLifetime(second) {} })
      )
    }
    #expect(selecting != nil)
    bag.cancelAll()
    #expect(selecting == nil)
    #expect(calling == nil)
    core.close()
  }
}
