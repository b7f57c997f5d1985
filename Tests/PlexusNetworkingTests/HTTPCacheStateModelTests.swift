import TestSupport
import Testing

@testable import PlexusNetworking

@Suite(.fewAtOnce) struct `Selecting a stored answer` {
  private typealias State = HTTPCacheState<String, Int>

  private let german = ["accept-language": "de", "accept": "text/plain", "x": "1"]
  private let french = ["accept-language": "fr", "accept": "text/plain"]

  @Test func `until the first answer every request has its own entry`() {
    var state = State()
    #expect(state.key("a", fields: german, new: 1) == 1)
    #expect(state.key("a", fields: french, new: 2) == 2)
    #expect(state.remove("a") == [1, 2])
  }

  @Test func `an answer that names no field is for all requests`() {
    var state = State()
    #expect(state.key("a", fields: german, new: 1) == 1)
    state.answer([], "a", fields: german, key: 1)
    #expect(state.key("a", fields: french, new: 2) == 1)
    #expect(state.key("b", fields: french, new: 3) == 3)
  }

  @Test func `an answer is for requests with the same values in the fields that it names`() {
    var state = State()
    state.answer(["accept-language"], "a", fields: german, key: 1)
    #expect(state.key("a", fields: ["accept-language": "de"], new: 2) == 1)
    #expect(state.key("a", fields: french, new: 3) == 3)
    #expect(state.key("a", fields: ["accept": "text/plain"], new: 4) == 4)
    state.answer(["accept-language"], "a", fields: french, key: 3)
    #expect(state.key("a", fields: french, new: 5) == 3)
    #expect(state.key("a", fields: german, new: 6) == 1)
    #expect(state.remove("a") == [1, 3, 4])
    #expect(state.key("a", fields: german, new: 7) == 7)
  }

  @Test func `a field that is not there differs from an empty one`() {
    var state = State()
    state.answer(["x"], "a", fields: [:], key: 1)
    #expect(state.key("a", fields: ["x": ""], new: 2) == 2)
    #expect(state.key("a", fields: ["y": "1"], new: 3) == 1)
  }

  @Test func `an answer that names other fields than before makes the others useless`() {
    var state = State()
    state.answer(["accept-language"], "a", fields: german, key: 1)
    state.answer(["accept"], "a", fields: french, key: 2)
    #expect(state.key("a", fields: german, new: 3) == 2)
    #expect(state.remove("a") == [1, 2])
  }

  @Test func `what is known is bounded`() {
    var state = HTTPCacheState<Int, Int>(limit: 3)
    for number in 0..<100 {
      #expect(state.key(number, fields: [:], new: number) == number)
      #expect(state.count <= 3)
    }
  }
}
