import Testing

@testable import PlexusRedis

struct `The spaces that were checked on a connection` {
  private func connected() -> CheckedSpacesState {
    var state = CheckedSpacesState()
    state.connect(["a"], of: "1")
    return state
  }

  @Test func `only the spaces that were checked when the connection began are checked`() {
    var state = connected()
    #expect(state.isChecked("a") && !state.isChecked("b"))
    state.note("b", of: "1", asOf: state.round)
    #expect(state.isChecked("b"))
    state.connect(["b"], of: "2")
    #expect(!state.isChecked("a") && state.isChecked("b"))
    #expect(state.history(of: "a") == nil && state.history(of: "b") == "2")
  }

  @Test func `after a doubt each space is checked again and its last history is known`() {
    var state = connected()
    state.doubt()
    #expect(!state.isChecked("a"))
    #expect(state.history(of: "a") == "1" && state.history(of: "b") == nil)
    state.note("a", of: "2", asOf: state.round)
    #expect(state.isChecked("a") && state.history(of: "a") == "2")
  }

  @Test func `a check that began before a doubt or another connection does not count`() {
    for change in [{ $0.doubt() }, { $0.connect([], of: "1") }]
      as [(inout CheckedSpacesState) -> Void]
    {
      var state = connected()
      let round = state.round
      change(&state)
      let history = state.history(of: "a")
      state.note("a", of: "2", asOf: round)
      #expect(!state.isChecked("a") && state.history(of: "a") == history)
    }
  }
}
