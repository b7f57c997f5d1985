import TestSupport
import Testing

@testable import PlexusNetworking

@Suite(.fewAtOnce) struct `Selecting a stored answer` {
  private typealias State = HTTPCacheState<String, Int>

  private let german = ["accept-language": "de", "accept": "text/plain", "x": "1"]
  private let french = ["accept-language": "fr", "accept": "text/plain"]

  @Test func `until the first answer every request has its own entry`() {
    var state = State()
    #expect(state.enter("a", fields: german, new: 1) == 1)
    #expect(state.enter("a", fields: french, new: 2) == 2)
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
    #expect(state.enter("a", fields: french, new: 3) == 3)
    #expect(state.enter("a", fields: ["accept": "text/plain"], new: 4) == 4)
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

  @Test func `an entry that stays empty is forgotten with its last request`() {
    var state = State()
    for _ in 0..<2 { _ = state.enter("a", fields: german, new: 1) }
    state.leave("a", 1, isEmpty: true)
    #expect(state.count == 1, "Another request waits for it")
    state.leave("a", 1, isEmpty: true)
    #expect(state.count == 0)
    _ = state.enter("a", fields: german, new: 1)
    state.answer([], "a", fields: german, key: 1)
    state.leave("a", 1, isEmpty: false)
    #expect(state.count == 1)
    #expect(state.remove("a") == [1])
    #expect(state.count == 0)
  }

  @Test func `entries that had to make room are forgotten in the end, others never`() {
    var state = HTTPCacheState<Int, Int>(limit: 10)
    // The number 0 has a value, a request waits for the number 1, and all others have made room.
    for number in 0..<1_000 {
      if let candidates = state.candidates { state.prune(candidates.filter { $0.key != 0 }) }
      _ = state.enter(number, fields: [:], new: number)
      state.answer([], number, fields: [:], key: number)
      if number != 1 { state.leave(number, number, isEmpty: false) }
      #expect(state.count <= 10)
    }
    #expect(state.remove(0) == [0])
    #expect(state.remove(1) == [1])
  }

  @Test func `an entry that is forgotten selects nothing`() {
    var state = HTTPCacheState<String, Int>(limit: 1)
    state.answer(["accept-language"], "a", fields: german, key: 1)
    state.answer(["accept-language"], "a", fields: french, key: 2)
    state.prune([("a", 1)])
    #expect(state.key("a", fields: german, new: 3) == 3)
    #expect(state.key("a", fields: french, new: 4) == 2)
    #expect(state.candidates == nil, "It looks again when there are twice as many")
  }
}
