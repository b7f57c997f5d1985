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
    for key in [1, 2] { _ = state.begin("a", key) }
    #expect(state.remove("a") == [1, 2])
    #expect(state.count == 0)
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
    #expect(state.remove("a") == [1, 3])
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

  @Test func `a stale value is fetched with the last request that it answers`() {
    var state = State()
    state.answer([], "a", fields: german, key: 1)
    #expect(state.begin("a", 1).asked == 1)
    #expect(state.key("a", fields: french, new: 2) == 1)
    #expect(state.begin("a", 1).asked == 2)
    #expect(state.key("a", fields: german, new: 1) == 1)
    #expect(state.begin("a", 1).asked == 1)
  }

  @Test
  func `an answer to another request is stored unless it names a field that differs`() {
    var state = State()
    let isStored = state.answer(["accept"], "a", fields: french, own: german, key: 1)
    #expect(isStored)
    #expect(state.key("a", fields: french, new: 2) == 1)
    let isStoredAgain = state.answer(["x"], "a", fields: french, own: german, key: 1)
    #expect(!isStoredAgain)
    #expect(state.key("a", fields: french, new: 2) == 2)
    #expect(state.key("a", fields: german, new: 1) == 1)
  }

  @Test(.guarantee(.httpBookkeepingIsBounded))
  func `entries without a value or a fetch are forgotten when there are many`() {
    var state = HTTPCacheState<Int, Int>(limit: 10)
    var fetches: [Int: HTTPCacheState<Int, Int>.Fetch] = [:]
    for number in 0..<1_000 {
      fetches[number] = state.begin(number % 7, number)
      state.answer(["x"], number % 7, fields: ["x": "\(number)"], key: number)
      if number > 2, let fetch = fetches[number] { state.end(fetch, of: number % 7, number) }
      if state.isFull { state.prune(keeping: [3, 4]) }
      #expect(state.count <= 30)
    }
    let removed = (0..<7).flatMap { state.remove($0) }
    // Those in flight, those with a value, and the last one, whose value may be on its way.
    #expect(Set(removed).isSuperset(of: [0, 1, 2, 3, 4, 999]))
    #expect(state.count == 0)
  }

  @Test func `the end of a fetch that was overtaken by a removal does not end the next one`() {
    var state = HTTPCacheState<Int, Int>(limit: 0)
    let old = state.begin(1, 1)
    #expect(state.remove(1) == [1])
    _ = state.begin(1, 1)
    state.end(old, of: 1, 1)
    for _ in 0..<3 { state.prune(keeping: []) }
    #expect(state.remove(1) == [1])
  }

  @Test func `an entry can stay when the older ones of its URL go`() {
    var state = State()
    for (key, date) in [(1, 10), (2, 20), (3, 30), (4, 20)] as [(Int, Int64)] {
      state.answer(["x"], "a", fields: ["x": "\(key)"], key: key, terms: .init(date: date))
    }
    // One that is in flight has no answer yet.
    _ = state.begin("a", 5)
    #expect(state.removeOlder("a", than: 2) == [1])
    #expect(state.removeOlder("a", than: 4) == [2])
    #expect(state.count == 3)
    #expect(state.key("a", fields: ["x": "3"], new: 6) == 3)
    #expect(state.remove("a") == [3, 4, 5])
    #expect(state.removeOlder("a", than: 2).isEmpty)
  }

  @Test(.guarantee(.mostRecentAnswerCounts))
  func `of several answers for a request the most recent one counts, by its date`() {
    var state = State()
    let isNewStored = state.answer([], "a", fields: german, key: 1, terms: .init(date: 20))
    let isOldStored = state.answer([], "a", fields: french, key: 2, terms: .init(date: 10))
    #expect(isNewStored && !isOldStored)
    #expect(state.key("a", fields: french, new: 2) == 1)
    // Also if its server has named other fields.
    state.answer(["accept-language"], "a", fields: french, key: 3, terms: .init(date: 15))
    #expect(state.key("a", fields: french, new: 2) == 1)
    state.answer(["accept-language"], "a", fields: french, key: 3, terms: .init(date: 25))
    #expect(state.key("a", fields: french, new: 2) == 3)
    #expect(state.key("a", fields: german, new: 2) == 1)
    // Of the same date the last one to arrive.
    state.answer([], "a", fields: german, key: 4, terms: .init(date: 25))
    #expect(state.key("a", fields: french, new: 2) == 4)
  }

  @Test(.guarantee(.mostRecentAnswerCounts))
  func `the answer to a fetch that was overtaken by a removal is not stored`() {
    var state = State()
    let fetch = state.begin("a", 1)
    #expect(state.remove("a") == [1])
    let isStored = state.answer([], "a", fields: german, key: 1, fetch: fetch)
    #expect(!isStored)
    #expect(state.key("a", fields: french, new: 2) == 2)
    #expect(state.count == 0)
  }

  @Test(.guarantee(.clearedFetchesEndNoLaterOne))
  func `a fetch from before everything was removed does not end a later one`() {
    var state = State()
    let early = state.begin("a", 1)
    state.removeAll()
    let late = state.begin("a", 1)
    let isEarlyStored = state.answer([], "a", fields: german, key: 1, fetch: early)
    state.end(early, of: "a", 1)
    let isLateStored = state.answer([], "a", fields: german, key: 1, fetch: late)
    #expect(!isEarlyStored && isLateStored)
  }

  @Test func `a server that names other fields each time does not fill the search`() {
    var state = State()
    for key in 0..<1_000 {
      state.answer(["x\(key)"], "a", fields: ["x\(key)": "1"], key: key)
    }
    #expect(state.key("a", fields: ["x999": "1"], new: -1) == 999)
    #expect(state.key("a", fields: ["x0": "1"], new: -1) != 0)
    #expect(state.count == 1_000)
    #expect(state.remove("a").count == 1_000)
  }
}
