import TestSupport
import Testing

@testable import Plexus

/// The rules of a list that is loaded page by page.
@Suite(.fewAtOnce) struct `Paged publisher state` {
  typealias State = PagingState<String, Int, @Sendable (inout [String]) -> Void>
  typealias Walk = PagesWalk<String, Int>

  /// Starts a load, which must be possible.
  func begin(_ state: inout State, _ request: State.Request) throws -> (Flight, State.Start) {
    guard case .begins = state.answer(to: request, isStale: false) else {
      throw LoadingFailure.first
    }
    let load = Flight.ofCaller()
    return (load, state.begin(load, for: request))
  }

  /// Loads a page at an end, or the first page.
  @discardableResult
  func load(
    _ state: inout State,
    _ request: State.Request,
    _ item: String = "x",
    previous: Int? = nil,
    next: Int? = nil
  ) throws -> State.Acceptance {
    let page = Page(items: [item], previous: previous, next: next)
    let (flight, start) = try begin(&state, request)
    switch start {
    case .page:
      return state.accept(page, of: flight)
    case .whole(var walk):
      #expect(walk.add(page) == true)
      return accept(&walk, of: flight, &state)
    }
  }

  func accept(
    _ walk: inout Walk,
    of flight: Flight,
    _ state: inout State
  ) -> State.Acceptance {
    state.accept(&walk, of: flight) { edit, items in edit(&items) }
  }

  /// Loads all pages again, from an origin that is given as pages by cursor.
  ///
  /// - Returns: The cursors in the order of loading.
  @discardableResult
  func refresh(_ state: inout State, from origin: [Int?: Page<String, Int>]) throws -> [Int?] {
    let (flight, start) = try begin(&state, .refresh)
    guard case .whole(var walk) = start else { throw LoadingFailure.second }
    var asked: [Int?] = []
    while let cursor = walk.next {
      asked.append(cursor)
      guard let page = origin[cursor], walk.add(page) else { throw LoadError.repeatedCursor }
    }
    #expect(accept(&walk, of: flight, &state) == .accepted)
    return asked
  }

  /// The cursor of the next load at an end; `nil` if there is nothing to load.
  func cursor(_ state: State, _ edge: PagesEdge) -> Int?? {
    var copy = state
    guard let (_, start) = try? begin(&copy, .page(edge)), case .page(let cursor) = start else {
      return nil
    }
    return .some(cursor)
  }

  @Test(arguments: [PagesEdge.start, .end])
  func `a request for a page of nothing begins with the first one`(edge: PagesEdge) throws {
    var state = State()
    guard case .whole(let walk) = try begin(&state, .page(edge)).1 else {
      Issue.record("It begins elsewhere")
      return
    }
    #expect(walk.next == .some(nil))
  }

  @Test func `a request joins the load of the whole list in flight`() throws {
    var state = State()
    let (current, _) = try begin(&state, .first)
    for request in [State.Request.first, .refresh, .page(.start), .page(.end)] {
      guard case .joins(let joined) = state.answer(to: request, isStale: false),
        joined === current
      else {
        Issue.record("\(request) did not join")
        return
      }
      #expect(state.isCurrent(current))
    }
  }

  @Test func `both ends are loaded at once, each of them once`() throws {
    var state = State()
    try load(&state, .first, "b", previous: 1, next: 3)
    let (start, _) = try begin(&state, .page(.start))
    let (end, _) = try begin(&state, .page(.end))
    for (edge, load) in [(PagesEdge.start, start), (.end, end)] {
      guard case .joins(let joined) = state.answer(to: .page(edge), isStale: false),
        joined === load
      else {
        Issue.record("\(edge) did not join")
        return
      }
    }
    #expect(state.accept(Page(items: ["c"], next: nil), of: end) == .accepted)
    #expect(words(state.current) == "loading(b c.)")
    #expect(state.accept(Page(items: ["a"], next: 2), of: start) == .accepted)
    #expect(words(state.current) == "loaded(a b c.)")
  }

  @Test(arguments: [State.Request.first, .refresh])
  func `a load of the whole list supersedes loads at the ends`(request: State.Request) throws {
    var state = State()
    try load(&state, .first, "b", previous: 1, next: 3)
    let (start, _) = try begin(&state, .page(.start))
    let (end, _) = try begin(&state, .page(.end))
    let (whole, _) = try begin(&state, request)
    #expect(state.isCurrent(whole))
    for late in [start, end] {
      let acceptance = state.accept(Page(items: ["late"], next: nil), of: late)
      let isFailed = state.fail(late, with: LoadError.repeatedCursor)
      let isAbandoned = state.abandon(late)
      #expect(acceptance == .ignored)
      #expect(!isFailed && !isAbandoned)
    }
    #expect(words(state.current) == "loading(b)")
  }

  @Test func `a request for the first page supersedes a refresh, and no refresh supersedes it`()
    throws
  {
    var state = State()
    try load(&state, .first, next: 1)
    let (refresh, start) = try begin(&state, .refresh)
    let (first, _) = try begin(&state, .first)
    guard case .whole(var walk) = start else { throw LoadingFailure.first }
    #expect(walk.add(Page(items: ["late"], next: nil)) == true)
    #expect(accept(&walk, of: refresh, &state) == .ignored)
    guard case .joins(let joined) = state.answer(to: .refresh, isStale: false) else {
      throw LoadingFailure.second
    }
    #expect(joined === first)
  }

  @Test func `there is nothing to load beyond the first and the last page`() throws {
    var state = State()
    try load(&state, .first)
    for edge in PagesEdge.allCases { #expect(cursor(state, edge) == nil) }
    #expect(words(state.current) == "loaded(x.)")
  }

  @Test func `a failure keeps the cursor, and is replaced by a load of the same end`() throws {
    var state = State()
    try load(&state, .first, next: 7)
    let (current, _) = try begin(&state, .page(.end))
    let isPublished = state.fail(current, with: LoadingFailure.first)
    #expect(isPublished)
    #expect(words(state.current) == "failed(first, x)")
    #expect(cursor(state, .end) == .some(7))
    try load(&state, .page(.end), "y")
    #expect(words(state.current) == "loaded(x y.)")
  }

  @Test func `the last failure that no load has replaced is published`() throws {
    var state = State()
    try load(&state, .first, "b", previous: 1, next: 3)
    let (start, _) = try begin(&state, .page(.start))
    let (end, _) = try begin(&state, .page(.end))
    _ = state.fail(end, with: LoadingFailure.second)
    #expect(words(state.current) == "loading(b)")
    _ = state.fail(start, with: LoadingFailure.first)
    #expect(words(state.current) == "failed(first, b)")
    try load(&state, .page(.start), "a")
    #expect(words(state.current) == "failed(second, a b)")
    try load(&state, .page(.end), "c")
    #expect(words(state.current) == "loaded(a b c.)")
  }

  @Test func `the failure of a refresh does not come back after a page has arrived at an end`()
    throws
  {
    var state = State()
    try load(&state, .first, previous: -1, next: 1)
    let refresh = try begin(&state, .refresh).0
    let hasFailed = state.fail(refresh, with: LoadingFailure.first)
    #expect(hasFailed)
    let late = try begin(&state, .page(.end)).0
    try load(&state, .page(.start))
    let isAbandoned = state.abandon(late)
    #expect(isAbandoned)
    #expect(state.current.error == nil)
  }

  @Test func `an abandoned load leaves the state as if it had not begun`() throws {
    var state = State()
    try load(&state, .first, next: 7)
    let (failed, _) = try begin(&state, .page(.end))
    _ = state.fail(failed, with: LoadingFailure.first)
    let (later, _) = try begin(&state, .page(.end))
    let (first, _) = try begin(&state, .first)
    let (isLateNoticed, isNoticed) = (state.abandon(later), state.abandon(first))
    #expect(!isLateNoticed && isNoticed)
    #expect(words(state.current) == "failed(first, x)")
  }

  @Test func `a reset drops the pages, the cursors, the failures, the edits and the loads`() throws
  {
    var state = State(maximumPageCount: 1)
    try load(&state, .first, next: 7)
    try load(&state, .page(.end), next: 8)
    let (late, _) = try begin(&state, .page(.end))
    state.reset()
    #expect(words(state.current) == "unknown")
    #expect(state.accept(Page(items: ["late"], next: 9), of: late) == .ignored)
    let (whole, _) = try begin(&state, .first)
    #expect(state.edit({ _ in }, { edit, items in edit(&items) }).isChanged)
    state.reset()
    #expect(state.keptEditCount == 0)
    #expect(!state.isCurrent(whole))
    try load(&state, .first)
    #expect(cursor(state, .start) == nil)
  }

  @Test func `a change keeps the replaced parts until they are taken`() throws {
    var state = State()
    try load(&state, .first)
    _ = state.takeFormer()
    state.reset()
    state.reset()
    #expect(state.takeFormer()?.value?.items == ["x"])
    #expect(state.takeFormer() == nil)
  }
}

/// The window of a list, and its refreshes.
extension `Paged publisher state` {
  @Test(arguments: [false, true])
  func `pages that left at the start are loaded again, by their own cursors if need be`(
    isLinked: Bool
  ) throws {
    var state = State(maximumPageCount: 2)
    try load(&state, .first, "0", next: 1)
    try load(&state, .page(.end), "1", previous: isLinked ? 0 : nil, next: 2)
    try load(&state, .page(.end), "2", previous: isLinked ? 1 : nil, next: 3)
    #expect(words(state.current) == "loaded(1 2)")
    #expect(state.current.value?.isCompleteAtStart == false)
    #expect(cursor(state, .start) == .some(isLinked ? 0 : nil))
    try load(&state, .page(.end), "3", previous: isLinked ? 2 : nil)
    #expect(cursor(state, .start) == .some(1))
    try load(&state, .page(.start), "1!", previous: isLinked ? 0 : nil, next: 2)
    try load(&state, .page(.start), "0!", next: 1)
    #expect(words(state.current) == "loaded(0! 1!)")
    #expect(state.current.value?.isCompleteAtStart == true)
    #expect(cursor(state, .end) == .some(2))
  }

  @Test func `a list that is only loaded backward finds the pages that left at its end`() throws {
    var state = State(maximumPageCount: 1)
    try load(&state, .first, "newest", previous: -1)
    try load(&state, .page(.start), "old", previous: -2)
    try load(&state, .page(.start), "oldest")
    #expect(words(state.current) == "loaded(oldest)")
    try refresh(&state, from: [-2: Page(items: ["oldest!"], next: nil)])
    #expect(cursor(state, .end) == .some(-1))
    try load(&state, .page(.end), "old", previous: -2)
    #expect(cursor(state, .end) == .some(nil))
    try load(&state, .page(.end), "newest", previous: -1)
    #expect(words(state.current) == "loaded(newest.)")
  }

  @Test func `a page that was the last one when it came back ends the list`() throws {
    var state = State(maximumPageCount: 2)
    try load(&state, .first, "0", next: 1)
    try load(&state, .page(.end), "1", previous: 0, next: 2)
    try load(&state, .page(.end), "2", previous: 1)
    try load(&state, .page(.start), "0", next: 1)
    try load(&state, .page(.end), "2", previous: 1)
    try load(&state, .page(.start), "0", next: 1)
    #expect(words(state.current) == "loaded(0 1)")
    try refresh(
      &state,
      from: [0: Page(items: ["0"], next: 1), 1: Page(items: ["1"], previous: 0, next: nil)]
    )
    #expect(words(state.current) == "loaded(0 1.)")
  }

  @Test func `a page that leaves supersedes the load and the failure beyond it`() throws {
    var state = State(maximumPageCount: 1)
    try load(&state, .first, "b", previous: 1, next: 3)
    let (failing, _) = try begin(&state, .page(.start))
    _ = state.fail(failing, with: LoadingFailure.first)
    let (late, _) = try begin(&state, .page(.start))
    try load(&state, .page(.end), "c", previous: 2)
    #expect(words(state.current) == "loaded(c.)")
    #expect(state.accept(Page(items: ["late"], next: 2), of: late) == .ignored)
    #expect(words(state.current) == "loaded(c.)")
  }

  @Test func `a refresh follows the cursors of the new pages`() throws {
    var state = State()
    try load(&state, .first, "0", next: 1)
    try load(&state, .page(.end), "1", next: 2)
    let asked = try refresh(
      &state,
      from: [nil: Page(items: ["0!"], next: 5), 5: Page(items: ["5"], next: 6)]
    )
    #expect(asked == [nil, 5])
    #expect(words(state.current) == "loaded(0! 5)")
    #expect(cursor(state, .end) == .some(6))
  }

  @Test func `a refresh ends sooner if the list does`() throws {
    var state = State()
    try load(&state, .first, "0", next: 1)
    try load(&state, .page(.end), "1", next: 2)
    let asked = try refresh(&state, from: [nil: Page(items: ["0!"], next: nil)])
    #expect(asked == [nil])
    #expect(words(state.current) == "loaded(0!.)")
  }

  @Test func `a refresh of a list that is only loaded backward begins with the newest page`() throws
  {
    var state = State()
    try load(&state, .first, "0", previous: -1)
    try load(&state, .page(.start), "-1", previous: -2)
    let asked = try refresh(
      &state,
      from: [nil: Page(items: ["1"], previous: 0, next: nil), 0: Page(items: ["0"], next: nil)]
    )
    #expect(asked == [nil, 0])
    #expect(words(state.current) == "loaded(0 1.)")
    #expect(state.current.value?.isCompleteAtStart == true)
  }

  @Test func `a refresh of pages with links in both directions from the first loads all of them`()
    throws
  {
    var state = State()
    try load(&state, .first, "0", previous: -1, next: 1)
    try load(&state, .page(.start), "-1")
    try load(&state, .page(.end), "1")
    let origin: [Int?: Page<String, Int>] = [
      -1: Page(items: ["-1!"], next: nil), nil: Page(items: ["0!"], previous: -1, next: 1),
      1: Page(items: ["1!"], next: nil),
    ]
    #expect(try refresh(&state, from: origin) == [-1, nil, 1])
    #expect(words(state.current) == "loaded(-1! 0! 1!.)")
  }

  @Test func `a page whose next cursor is there already is kept, and ends the list`() throws {
    for repeated in [1, 2, 3] {
      var state = State(maximumPageCount: repeated == 1 ? 1 : nil)
      try load(&state, .first, "0", next: 1)
      try load(&state, .page(.end), "1", next: 2)
      try load(&state, .page(.end), "2", next: 3)
      let acceptance = try load(&state, .page(.end), "3", next: repeated)
      #expect(acceptance == .repeated)
      let items = repeated == 1 ? "3" : "0 1 2 3"
      #expect(words(state.current) == "failed(\(LoadError.repeatedCursor), \(items).)")
      #expect(cursor(state, .end) == nil)
    }
  }

  @Test func `a page whose previous cursor is there already is kept, and begins the list`() throws {
    for repeated in [-1, -2, 0] {
      var state = State()
      try load(&state, .first, "0", previous: -1, next: 0)
      try load(&state, .page(.end), "0+")
      try load(&state, .page(.start), "-1", previous: -2)
      let acceptance = try load(&state, .page(.start), "-2", previous: repeated)
      #expect(acceptance == .repeated)
      #expect(state.current.value?.items == ["-2", "-1", "0", "0+"])
      #expect(state.current.value?.isCompleteAtStart == true)
      #expect(state.current.error as? LoadError == .repeatedCursor)
    }
  }

  @Test func `a page that is requested again is replaced in its place, never appended`() throws {
    var state = State()
    try load(&state, .first, "0", previous: 1, next: 1)
    try load(&state, .page(.end), "1", next: 2)
    try load(&state, .page(.end), "2", next: 3)
    let acceptance = try load(&state, .page(.start), "1!", previous: 9)
    #expect(acceptance == .repeated)
    #expect(state.current.value?.items == ["0", "1!", "2"])
    #expect(cursor(state, .start) == nil)
    #expect(cursor(state, .end) == .some(3))
  }

  @Test func `an edit is applied once to the pages of a refresh, however often they are offered`()
    throws
  {
    var state = State()
    try load(&state, .first, "a", next: 1)
    try load(&state, .page(.end), "b")
    let (flight, start) = try begin(&state, .refresh)
    guard case .whole(var walk) = start else { throw LoadingFailure.first }
    #expect(walk.add(Page(items: ["a"], next: 1)) && walk.add(Page(items: ["b"], next: nil)))
    for number in 1...3 {
      _ = state.edit({ $0.append("\(number)") }, { edit, items in edit(&items) })
      var copy = state
      #expect(accept(&walk, of: flight, &copy) == .accepted)
      let edits = (1...number).map { "\($0)" }
      #expect(copy.current.value?.items == ["a"] + edits + ["b"] + edits)
    }
  }

  @Test func `a walk does not continue with a page that it has, or that it has passed`() {
    let first = LoadedPage<String, Int>(cursor: 1, Page(items: [], previous: 0, next: 2))
    let second = LoadedPage<String, Int>(cursor: 2, Page(items: [], previous: 1, next: 3))
    for (previous, next) in [(0, 1), (0, 7), (0, 2), (1, 2), (2, 2)] {
      var walk = Walk(refreshing: [first, second], towards: .end, passed: [7])
      let isNew =
        walk.add(Page(items: [], previous: previous, next: next))
        && walk.add(Page(items: [], next: 3))
      #expect(isNew == (previous == 0 && next == 2))
    }
    var walk = Walk(refreshing: [first, second], towards: .end, passed: [])
    #expect(walk.add(Page(items: [], next: 2)) == true)
    #expect(walk.add(Page(items: [], next: 1)) == false)
  }
}
