import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Data publisher state` {
  typealias State = LoadingState<Int>

  @Test func `the state of a data publisher begins as unknown, without a load`() {
    let state = State()
    #expect(words(state.current) == "unknown")
    #expect(state.load == nil)
    #expect(!state.isStale(after: .zero, at: .seconds(9)))
  }

  @Test func `the state of a data publisher distinguishes a load from those before it`() {
    var state = State()
    let first = state.beginLoad()
    #expect(state.isCurrent(first))
    state.reset()
    let second = state.beginLoad()
    #expect(!state.isCurrent(first))
    #expect(state.isCurrent(second))
  }

  @Test func `a request for a fresh value is answered only while a state is loaded and not stale`()
  {
    var state = State()
    func isKnown(isStale: Bool = false) -> Bool {
      guard case .known(1) = state.answer(to: .fresh, isStale: isStale) else { return false }
      return true
    }
    #expect(!isKnown())
    state.update(1, at: .zero)
    #expect(isKnown())
    #expect(!isKnown(isStale: true))
    let load = state.beginLoad()
    #expect(!isKnown())
    guard case .joins(let joined) = state.answer(to: .fresh), joined === load else {
      Issue.record("The load in flight was not joined")
      return
    }
    state.fail(LoadingFailure.first)
    #expect(!isKnown())
  }

  @Test func `the state of a data publisher takes the result of the current load`() {
    var state = State()
    let load = state.beginLoad()
    #expect(words(state.current) == "loading(-)")
    #expect(state.finish(load, with: .success(1), at: .seconds(3)) == true)
    #expect(words(state.current) == "loaded(1)")
    #expect(state.load == nil)
    #expect(!state.isStale(after: .seconds(2), at: .seconds(4)))
    #expect(state.isStale(after: .seconds(2), at: .seconds(5)))
    let failing = state.beginLoad()
    #expect(
      state.finish(failing, with: .failure(LoadingFailure.first), at: .seconds(6)) == true
    )
    #expect(words(state.current) == "failed(first, 1)")
  }

  @Test func `the state of a data publisher takes a result once`() {
    var state = State()
    let load = state.beginLoad()
    #expect(state.finish(load, with: .success(1), at: .zero) == true)
    #expect(state.finish(load, with: .success(2), at: .zero) == false)
    #expect(state.abandon(load) == false)
    #expect(words(state.current) == "loaded(1)")
  }

  @Test(.guarantee(.lateResultsHaveNoEffect), arguments: ["reset", "update", "fail", "abandon"])
  func `a result that comes after something newer is ignored`(event: String) {
    var state = State()
    state.update(1, at: .zero)
    let load = state.beginLoad()
    switch event {
    case "reset": state.reset()
    case "update": state.update(2, at: .zero)
    case "fail": state.fail(LoadingFailure.first)
    default: #expect(state.abandon(load) == true)
    }
    let before = words(state.current)
    #expect(state.load == nil)
    #expect(state.finish(load, with: .success(3), at: .zero) == false)
    #expect(state.finish(load, with: .failure(LoadingFailure.second), at: .zero) == false)
    #expect(state.abandon(load) == false)
    #expect(words(state.current) == before)
  }

  @Test func `a data publisher returns to the previous state when a load is abandoned`() {
    for before in ["unknown", "loaded", "failed", "loading"] {
      var state = State()
      if before != "unknown" { state.update(1, at: .seconds(1)) }
      if before == "failed" { state.fail(LoadingFailure.first) }
      if before == "loading" { state.startLoading() }
      let expected = words(state.current)
      let load = state.beginLoad()
      #expect(state.abandon(load) == true)
      #expect(words(state.current) == expected)
      #expect(state.isStale(after: .seconds(1), at: .seconds(2)) == (before == "loaded"))
    }
  }

  @Test func `the state of a data publisher never goes back to a value that was reset`() {
    var state = State()
    state.update(1, at: .zero)
    let load = state.beginLoad()
    state.reset()
    #expect(state.abandon(load) == false)
    #expect(state.current.value == nil)
  }
}

extension LoadingState {
  /// Returns the answer to a request while no value is stale.
  func answer(to request: Request) -> LoadingAnswer<Value> {
    answer(to: request, isStale: false)
  }

  /// Starts a load.
  mutating func beginLoad() -> Flight {
    let load = Flight.ofCaller()
    begin(load, for: .new)
    return load
  }
}
