import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Action queue state` {
  typealias State = ActionRun.QueueState<String, Int>

  @Test func `a first run is current, a second one waits, and later ones are coalesced with it`() {
    var state = State()
    #expect(state.last == nil)
    #expect(state.add("a", id: 1, ticket: 10) == (true, nil))
    #expect(state.last?.ticket == 10)
    #expect(state.add("b", id: 2, ticket: 20) == (false, nil))
    #expect(state.add("c", id: 3, ticket: 30) == (false, "b"))
    #expect(state.last?.ticket == 20, "who waits for b waits for c")
    #expect(state.begin(1)?.value == "a")
    #expect(state.end(1)?.ticket == 10)
    #expect(state.current?.id == 2)
    #expect(state.begin(2)?.value == "c")
    #expect(state.end(2)?.ticket == 20)
    #expect(state.last == nil)
  }

  @Test func `a run that has not started keeps its value`() {
    var state = State()
    _ = state.add("a", id: 1, ticket: 10)
    _ = state.add("b", id: 2, ticket: 20)
    #expect(state.begin(1)?.value == "a")
  }

  @Test func `a run starts and ends once, and no other run takes its place`() {
    var state = State()
    _ = state.add("a", id: 1, ticket: 10)
    #expect(state.end(1) == nil)
    #expect(state.begin(2) == nil)
    #expect(state.begin(1) != nil)
    #expect(state.begin(1) == nil)
    #expect(state.end(2) == nil)
    #expect(state.end(1) != nil)
    #expect(state.end(1) == nil)
  }

  @Test func `cancelling an action queue drops runs that have not started`() {
    var state = State()
    _ = state.add("a", id: 1, ticket: 10)
    _ = state.add("b", id: 2, ticket: 20)
    #expect(state.cancel().map(\.ticket) == [10, 20])
    #expect(state.last == nil)
    #expect(state.begin(1) == nil)
    #expect(state.cancel().count == 0)
  }

  @Test func `cancelling an action queue keeps a started run, and no other run overlaps it`() {
    var state = State()
    _ = state.add("a", id: 1, ticket: 10)
    _ = state.begin(1)
    _ = state.add("b", id: 2, ticket: 20)
    #expect(state.cancel().map(\.ticket) == [20])
    #expect(state.current?.id == 1)
    #expect(state.add("c", id: 3, ticket: 30) == (false, nil))
    #expect(state.end(1)?.ticket == 10)
    #expect(state.begin(3)?.value == "c")
  }
}
