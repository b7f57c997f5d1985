import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Paged publisher state` {
  typealias State = PagedPublisherState<String, Int>

  /// Starts a load, which must be possible.
  func begin(
    _ state: inout State,
    _ request: State.Request
  ) throws -> (id: PublisherLoad.ID, cursor: Int?) {
    guard case .begins(let id, let cursor) = state.ask(for: request) else {
      throw LoadingFailure.first
    }
    return (id, cursor)
  }

  /// Loads a page with the given next cursor.
  func load(_ state: inout State, _ request: State.Request, next: Int?) throws {
    let (id, _) = try begin(&state, request)
    let isUsed = state.finishLoad(id, with: .success(Page(items: ["x"], next: next)))
    #expect(isUsed)
  }

  @Test func `a request for the next page of nothing begins with the first one`() throws {
    var state = State()
    let cursor = try begin(&state, .next).cursor
    #expect(cursor == nil)
  }

  @Test func `a request joins the load in flight`() throws {
    var state = State()
    let (id, _) = try begin(&state, .first)
    for request in [State.Request.first, .next] {
      let answer = state.ask(for: request)
      guard case .joins = answer else {
        Issue.record("\(request) did not join")
        return
      }
      #expect(state.currentLoad == id)
    }
  }

  @Test func `a request for the first page takes the place of a load of a later one`() throws {
    var state = State()
    try load(&state, .first, next: 7)
    let (later, cursor) = try begin(&state, .next)
    #expect(cursor == 7)
    let (first, noCursor) = try begin(&state, .first)
    #expect(noCursor == nil)
    #expect(state.currentLoad == first)
    let isUsed = state.finishLoad(later, with: .success(Page(items: ["late"], next: nil)))
    #expect(!isUsed)
    #expect(words(state.current) == "loading(x)")
  }

  @Test func `there is nothing to load after the last page`() throws {
    var state = State()
    try load(&state, .first, next: nil)
    guard case .nothing = state.ask(for: .next) else {
      Issue.record("It loads beyond the end")
      return
    }
    #expect(words(state.current) == "loaded(x.)")
  }

  @Test func `a failure keeps the cursor`() throws {
    var state = State()
    try load(&state, .first, next: 7)
    let (id, _) = try begin(&state, .next)
    let isPublished = state.finishLoad(id, with: .failure(LoadingFailure.first))
    #expect(isPublished)
    let cursor = try begin(&state, .next).cursor
    #expect(cursor == 7)
  }

  @Test func `a reset drops the pages, the cursor and the load`() throws {
    var state = State()
    try load(&state, .first, next: 7)
    let (id, _) = try begin(&state, .next)
    state.reset()
    #expect(state.currentLoad == nil)
    #expect(words(state.current) == "unknown")
    let isUsed = state.finishLoad(id, with: .success(Page(items: ["late"], next: 8)))
    let isNoticed = state.abandonLoad(id)
    #expect(!isUsed && !isNoticed)
    let cursor = try begin(&state, .next).cursor
    #expect(cursor == nil)
  }

  @Test func `an abandoned load leaves behind what was known before all loads`() throws {
    var state = State()
    try load(&state, .first, next: 7)
    let (later, _) = try begin(&state, .next)
    let (first, _) = try begin(&state, .first)
    let (isLateNoticed, isNoticed) = (state.abandonLoad(later), state.abandonLoad(first))
    #expect(!isLateNoticed && isNoticed)
    #expect(words(state.current) == "loaded(x)")
    #expect(state.currentLoad == nil)
  }
}
