import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `A wait list` {
  typealias State = WaitListState<Int>

  @Test(arguments: 0..<5)
  func `a wait list returns every parked caller once, when the event occurs`(late: Int) {
    var state = State()
    let places = (0..<5).map { _ in state.join() }
    #expect(state.count == 5)
    for (number, place) in places.enumerated() where number != late {
      #expect(state.park(number, in: place) == .parked)
    }
    #expect(parked(state.finish()) == (0..<5).filter { $0 != late })
    #expect(state.count == 0)
    #expect(!state.isOver, "One caller has yet to be told")
    #expect(state.park(late, in: places[late]) == .finished, "The event came before it parked")
    #expect(state.isOver)
    #expect(parked(state.finish()).isEmpty, "No caller is resumed twice")
  }

  @Test(arguments: 0..<3) func `a wait list removes a parked caller that leaves`(leaving: Int) {
    var state = State()
    let places = (0..<3).map { _ in state.join() }
    for (number, place) in places.enumerated() { _ = state.park(number, in: place) }
    let departure = state.leave(places[leaving])
    #expect(departure.hasLeft)
    #expect(departure.parked == leaving)
    #expect(state.count == 2)
    #expect(state.leave(places[leaving]) == (false, nil), "It leaves once")
    #expect(parked(state.finish()) == (0..<3).filter { $0 != leaving })
    #expect(state.isOver)
  }

  @Test(arguments: [false, true])
  func `a wait list does not park a caller that has left`(eventComes: Bool) {
    var state = State()
    let place = state.join()
    #expect(state.leave(place) == (true, nil))
    #expect(state.count == 0)
    if eventComes { _ = state.finish() }
    #expect(state.park(1, in: place) == .left, "It learns that it has left, also after the event")
    #expect(state.isOver == eventComes)
  }

  @Test func `a wait list frees the place of a caller that withdraws`() {
    var state = State()
    let first = state.join()
    let second = state.join()
    state.withdraw(first)
    #expect(state.count == 1)
    #expect(state.join() == first, "Its place is handed out again")
    _ = state.leave(second)
    state.withdraw(second)
    #expect(state.count == 1, "One that had left is not counted twice")
    _ = state.finish()
    state.withdraw(first)
    #expect(state.isOver)
  }

  @Test func `a wait list lets a caller go without parking once the event has occurred`() {
    var state = State()
    let first = state.join()
    let second = state.join()
    let third = state.join()
    let isEarly = state.withdrawIfFinished(first)
    #expect(!isEarly, "The event has not occurred")
    _ = state.leave(second)
    _ = state.finish()
    let hasLeft = !state.withdrawIfFinished(second)
    #expect(hasLeft, "One that has left parks to learn that")
    let isDone = state.withdrawIfFinished(first)
    #expect(isDone && !state.isOver)
    let parking = state.park(1, in: second)
    #expect(parking == .left)
    let isLast = state.withdrawIfFinished(third)
    #expect(isLast && state.isOver)
  }

  @Test func `a wait list ignores a caller that leaves after the event`() {
    var state = State()
    let place = state.join()
    _ = state.park(1, in: place)
    _ = state.finish()
    #expect(state.leave(place) == (false, nil))
    #expect(state.count == 0)
  }

  @Test func `a wait list reuses places, but never while they are taken`() {
    var state = State()
    var taken: Set<WaitPlace> = []
    var random = SeededRandom(seed: 3)
    for _ in 0..<10_000 {
      if taken.count < 50, Bool.random(using: &random) {
        #expect(taken.insert(state.join()).inserted)
      } else if let place = taken.randomElement(using: &random) {
        switch Int.random(in: 0..<3, using: &random) {
        case 0:
          _ = state.leave(place)
          #expect(state.park(1, in: place) == .left)
        case 1:
          #expect(state.park(1, in: place) == .parked)
          #expect(state.leave(place).parked == 1)
        default:
          state.withdraw(place)
        }
        taken.remove(place)
      }
      #expect(state.count == taken.count)
    }
    #expect(MemoryLayout<State>.size <= 64)
  }

  private func parked(_ waiting: State.Waiting) -> [Int] {
    var numbers: [Int] = []
    waiting.each { numbers.append($0) }
    return numbers
  }
}
