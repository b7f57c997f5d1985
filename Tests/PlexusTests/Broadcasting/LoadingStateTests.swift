import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Data publisher state` {
  typealias State = LoadingState<Int, Never>

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
    #expect(state.finishLoad(load, with: .success(1), at: .seconds(3)) == true)
    #expect(words(state.current) == "loaded(1)")
    #expect(state.load == nil)
    #expect(!state.isStale(after: .seconds(2), at: .seconds(4)))
    #expect(state.isStale(after: .seconds(2), at: .seconds(5)))
    let failing = state.beginLoad()
    #expect(
      state.finishLoad(failing, with: .failure(LoadingFailure.first), at: .seconds(6)) == true
    )
    #expect(words(state.current) == "failed(first, 1)")
  }

  @Test func `the state of a data publisher takes a result once`() {
    var state = State()
    let load = state.beginLoad()
    #expect(state.finishLoad(load, with: .success(1), at: .zero) == true)
    #expect(state.finishLoad(load, with: .success(2), at: .zero) == false)
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
    #expect(state.finishLoad(load, with: .success(3), at: .zero) == false)
    #expect(state.finishLoad(load, with: .failure(LoadingFailure.second), at: .zero) == false)
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

@Suite(.fewAtOnce) struct `Paged publisher state` {
  typealias State = LoadingState<Pages<String>, Int>

  /// Starts a load, which must be possible.
  func begin(
    _ state: inout State,
    _ request: State.Request
  ) throws -> (load: Flight, cursor: Int?) {
    guard case .begins(let continues) = state.answer(to: request) else {
      throw LoadingFailure.first
    }
    let load = Flight.ofCaller()
    return (load, state.begin(load, continuing: continues))
  }

  /// Loads a page with the given next cursor.
  func load(_ state: inout State, _ request: State.Request, next: Int?) throws {
    let (current, _) = try begin(&state, request)
    let isUsed = state.finishPage(current, with: .success(Page(items: ["x"], next: next)))
    #expect(isUsed)
  }

  @Test func `a request for the next page of nothing begins with the first one`() throws {
    var state = State()
    let cursor = try begin(&state, .next).cursor
    #expect(cursor == nil)
  }

  @Test func `a request joins the load in flight`() throws {
    var state = State()
    let (current, _) = try begin(&state, .first)
    for request in [State.Request.first, .next] {
      let answer = state.answer(to: request)
      guard case .joins(let joined) = answer, joined === current else {
        Issue.record("\(request) did not join")
        return
      }
      #expect(state.isCurrent(current))
    }
  }

  @Test func `a request for the first page takes the place of a load of a later one`() throws {
    var state = State()
    try load(&state, .first, next: 7)
    let (later, cursor) = try begin(&state, .next)
    #expect(cursor == 7)
    let (first, noCursor) = try begin(&state, .first)
    #expect(noCursor == nil)
    #expect(state.isCurrent(first))
    let isUsed = state.finishPage(later, with: .success(Page(items: ["late"], next: nil)))
    #expect(!isUsed)
    #expect(words(state.current) == "loading(x)")
  }

  @Test func `there is nothing to load after the last page`() throws {
    var state = State()
    try load(&state, .first, next: nil)
    guard case .known = state.answer(to: .next) else {
      Issue.record("It loads beyond the end")
      return
    }
    #expect(words(state.current) == "loaded(x.)")
  }

  @Test func `a failure keeps the cursor`() throws {
    var state = State()
    try load(&state, .first, next: 7)
    let (current, _) = try begin(&state, .next)
    let isPublished = state.finishPage(current, with: .failure(LoadingFailure.first))
    #expect(isPublished)
    let cursor = try begin(&state, .next).cursor
    #expect(cursor == 7)
  }

  @Test func `a reset drops the pages, the cursor and the load`() throws {
    var state = State()
    try load(&state, .first, next: 7)
    let (current, _) = try begin(&state, .next)
    state.reset()
    #expect(state.load == nil)
    #expect(words(state.current) == "unknown")
    let isUsed = state.finishPage(current, with: .success(Page(items: ["late"], next: 8)))
    let isNoticed = state.abandon(current)
    #expect(!isUsed && !isNoticed)
    let cursor = try begin(&state, .next).cursor
    #expect(cursor == nil)
  }

  @Test func `an abandoned load leaves behind what was known before all loads`() throws {
    var state = State()
    try load(&state, .first, next: 7)
    let (later, _) = try begin(&state, .next)
    let (first, _) = try begin(&state, .first)
    let (isLateNoticed, isNoticed) = (state.abandon(later), state.abandon(first))
    #expect(!isLateNoticed && isNoticed)
    #expect(words(state.current) == "loaded(x)")
    #expect(state.load == nil)
  }
}

extension LoadingState {
  /// Starts a load from the beginning.
  mutating func beginLoad() -> Flight {
    let load = Flight.ofCaller()
    _ = begin(load, continuing: false)
    return load
  }

  /// Ends a load of a value, as a ``DataPublisher`` does.
  mutating func finishLoad(
    _ load: Flight,
    with result: Result<Value, any Error>,
    at now: Duration
  ) -> Bool {
    finish(load, with: result) { $0.update($1, at: now) }
  }

  /// Ends a load of a page, as a ``PagedPublisher`` does.
  mutating func finishPage<Item>(
    _ load: Flight,
    with result: Result<Page<Item, Cursor>, any Error>
  ) -> Bool where Value == Pages<Item> {
    finish(load, with: result) { $0.append($1) }
  }
}
