import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Data publisher state` {
  typealias State = DataPublisherState<Int>

  @Test func `begins as unknown, without a load`() {
    let state = State()
    #expect(words(state.current) == "unknown")
    #expect(state.currentLoad == nil)
    #expect(!state.isStale(after: .zero, at: .seconds(9)))
  }

  @Test func `gives every load its own number`() {
    var state = State()
    let first = state.beginLoad()
    state.reset()
    let second = state.beginLoad()
    #expect(first != second)
    #expect(state.currentLoad == second)
  }

  @Test func `takes the result of the current load`() {
    var state = State()
    let load = state.beginLoad()
    #expect(words(state.current) == "loading(-)")
    #expect(state.finishLoad(load, with: .success(1), at: .seconds(3)) == true)
    #expect(words(state.current) == "loaded(1)")
    #expect(state.currentLoad == nil)
    #expect(!state.isStale(after: .seconds(2), at: .seconds(4)))
    #expect(state.isStale(after: .seconds(2), at: .seconds(5)))
    let failing = state.beginLoad()
    #expect(
      state.finishLoad(failing, with: .failure(LoadingFailure.first), at: .seconds(6)) == true
    )
    #expect(words(state.current) == "failed(first, 1)")
  }

  @Test func `takes a result once`() {
    var state = State()
    let load = state.beginLoad()
    #expect(state.finishLoad(load, with: .success(1), at: .zero) == true)
    #expect(state.finishLoad(load, with: .success(2), at: .zero) == false)
    #expect(state.abandonLoad(load) == false)
    #expect(words(state.current) == "loaded(1)")
  }

  @Test(arguments: ["reset", "update", "fail", "abandon"])
  func `rule 0.7: a result that comes after something newer is ignored`(event: String) {
    var state = State()
    state.update(1, at: .zero)
    let load = state.beginLoad()
    switch event {
    case "reset": state.reset()
    case "update": state.update(2, at: .zero)
    case "fail": state.fail(LoadingFailure.first)
    default: #expect(state.abandonLoad(load) == true)
    }
    let before = words(state.current)
    #expect(state.currentLoad == nil)
    #expect(state.finishLoad(load, with: .success(3), at: .zero) == false)
    #expect(state.finishLoad(load, with: .failure(LoadingFailure.second), at: .zero) == false)
    #expect(state.abandonLoad(load) == false)
    #expect(words(state.current) == before)
  }

  @Test func `returns to the previous state when a load is abandoned`() {
    for before in ["unknown", "loaded", "failed", "loading"] {
      var state = State()
      if before != "unknown" { state.update(1, at: .seconds(1)) }
      if before == "failed" { state.fail(LoadingFailure.first) }
      if before == "loading" { state.startLoading() }
      let expected = words(state.current)
      let load = state.beginLoad()
      #expect(state.abandonLoad(load) == true)
      #expect(words(state.current) == expected)
      #expect(state.isStale(after: .seconds(1), at: .seconds(2)) == (before == "loaded"))
    }
  }

  @Test func `never goes back to a value that was reset`() {
    var state = State()
    state.update(1, at: .zero)
    let load = state.beginLoad()
    state.reset()
    #expect(state.abandonLoad(load) == false)
    #expect(state.current.value == nil)
  }
}
