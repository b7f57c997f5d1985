import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `A wait list` {
  typealias State = WaitListState<Int>

  @Test func `hands out everybody who is parked when the event comes`() {
    var state = State()
    let places = (0..<5).map { _ in state.join() }
    #expect(state.count == 5)
    for (number, place) in places.enumerated() where number != 2 {
      #expect(state.park(number, in: place) == true)
    }
    #expect(Array(state.finish()) == [0, 1, 3, 4])
    #expect(state.count == 0)
    #expect(state.park(2, in: places[2]) == false, "The event came before it suspended")
    for place in places { #expect(state.giveBack(place) == false) }
    #expect(state.finish().isEmpty == true, "Nobody is resumed twice")
  }

  @Test func `lets one leave while it is parked`() {
    var state = State()
    let first = state.join()
    let second = state.join()
    _ = state.park(1, in: first)
    _ = state.park(2, in: second)
    let departure = state.leave(first)
    #expect(departure.hasLeft)
    #expect(departure.parked == 1)
    #expect(state.count == 1)
    #expect(state.leave(first) == (false, nil), "It leaves once")
    #expect(Array(state.finish()) == [2])
    #expect(state.giveBack(first) == true, "It learns that it has left, also after the event")
    #expect(state.giveBack(second) == false)
  }

  @Test func `lets one leave before it is parked`() {
    var state = State()
    let place = state.join()
    #expect(state.leave(place) == (true, nil))
    #expect(state.count == 0)
    #expect(state.park(1, in: place) == false)
    #expect(state.giveBack(place) == true)
  }

  @Test func `keeps those from leaving who have what they waited for`() {
    var state = State()
    let place = state.join()
    _ = state.park(1, in: place)
    _ = state.finish()
    #expect(state.leave(place) == (false, nil))
    #expect(state.giveBack(place) == false)
  }

  @Test func `hands places out again, and never two for one`() {
    var state = State()
    var taken: Set<WaitPlace> = []
    var random = SeededRandom(seed: 3)
    for _ in 0..<10_000 {
      if taken.count < 50, Bool.random(using: &random) {
        #expect(taken.insert(state.join()).inserted)
      } else if let place = taken.randomElement(using: &random) {
        if Bool.random(using: &random) { _ = state.leave(place) }
        _ = state.giveBack(place)
        taken.remove(place)
      }
    }
    #expect(MemoryLayout<State>.size < 64)
  }
}
