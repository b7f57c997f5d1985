import Testing

@testable import Plexus

/// The state of a list that is loaded page by page, and the belief of an observer that sees only the events.
struct PagesWorld {
  typealias State = PagingState<String, Int, Int>

  enum Event: Hashable {
    case ask(State.Request)
    case succeed(Int)
    case breakDown(Int)
    case abandon(Int)
    case edit
    case reset
    /// The origin gets shorter or longer.
    case changeOrigin
  }

  /// A page in the belief.
  struct Known {
    let number: Int
    var items: [String]
    let hasPrevious: Bool
    /// Whether a page follows, by its own word or since one did.
    var hasNext: Bool
    let givesNext: Bool
  }

  /// A load in the belief.
  struct Load {
    enum Course {
      case running, superseded, abandoned, ended
    }

    let part: State.Part
    let isRefresh: Bool
    /// The time at which it began.
    let time: Int
    let start: State.Start
    var course = Course.running
    /// Whether a caller still waits for it.
    var hasCaller = true
    var edits: [Int] = []
  }

  let style: PagesOrigin.Style
  let limit: Int?
  var state: State
  var origin: PagesOrigin
  var history: [Event] = []
  var brokenPromise: String?

  var flights: [Flight] = []
  var loads: [Load] = []
  var pages: [Known] = []
  var failures: [(part: State.Part, name: String, time: Int)] = []
  var editCount = 0
  var time = 0

  init(style: PagesOrigin.Style, limit: Int?) {
    (self.style, self.limit) = (style, limit)
    state = State(maximumPageCount: limit)
    origin = PagesOrigin(style: style)
  }

  var possibleEvents: [Event] {
    var events: [Event] = [
      .ask(.first), .ask(.refresh), .ask(.page(.start)), .ask(.page(.end)), .edit, .reset,
    ]
    if style != .backward { events.append(.changeOrigin) }
    for id in loads.indices where loads[id].hasCaller {
      events += [.succeed(id), .breakDown(id), .abandon(id)]
    }
    return events
  }

  mutating func apply(_ event: Event) {
    history.append(event)
    time += 1
    switch event {
    case .ask(let request): ask(request)
    case .succeed(let id): succeed(id)
    case .breakDown(let id): breakDown(id)
    case .abandon(let id): abandon(id)
    case .edit: edit()
    case .reset:
      state.reset()
      for id in loads.indices where loads[id].course == .running { loads[id].course = .superseded }
      (pages, failures) = ([], [])
    case .changeOrigin: origin.isShort.toggle()
    }
    _ = state.takeFormer()
    check()
  }

  // MARK: - Loads

  private func running(_ part: State.Part) -> Int? {
    loads.indices.first { loads[$0].course == .running && loads[$0].part == part }
  }

  private mutating func ask(_ request: State.Request) {
    var part = State.Part.whole
    if case .page(let edge) = request, !pages.isEmpty { part = .page(edge) }
    let isRefresh = request == .refresh && !pages.isEmpty
    var joined = running(.whole)
    if let whole = joined, request == .first, loads[whole].isRefresh { joined = nil }
    if running(.whole) == nil, part != .whole { joined = running(part) }
    switch state.answer(to: request, isStale: false) {
    case .known:
      if joined != nil || !isComplete(part) { brokenPromise = "nothing was loaded" }
    case .joins(let flight):
      let isRight = joined.map { flights[$0] === flight } ?? false
      if !isRight { brokenPromise = "the wrong load was joined" }
    case .begins:
      if joined != nil { brokenPromise = "a load was not joined" }
      if isComplete(part) { brokenPromise = "it loads beyond the end" }
      let flight = Flight.ofCaller()
      let start = state.begin(flight, for: request)
      for id in loads.indices where part == .whole && loads[id].course == .running {
        loads[id].course = .superseded
      }
      flights.append(flight)
      loads.append(Load(part: part, isRefresh: isRefresh, time: time, start: start))
    }
  }

  private func isComplete(_ part: State.Part) -> Bool {
    guard case .page(let edge) = part, let first = pages.first, let last = pages.last else {
      return false
    }
    // Where the pages give no cursors, departed pages are remembered.
    return switch (edge, style) {
    case (.start, .forward): first.number == 0
    case (.start, _): !first.hasPrevious
    case (.end, .backward): last.number == 0
    case (.end, _): !last.hasNext
    }
  }

  private mutating func retire(_ id: Int, _ course: Load.Course) -> Bool {
    loads[id].hasCaller = false
    guard loads[id].course == .running else { return false }
    loads[id].course = course
    return true
  }

  private mutating func succeed(_ id: Int) {
    let load = loads[id]
    let isUsed = retire(id, .ended)
    let acceptance: State.Acceptance
    var new: [Known] = []
    switch load.start {
    case .page(let cursor):
      let page = origin.page(at: cursor)
      new = [known(page, at: cursor)]
      acceptance = state.accept(page, of: flights[id])
    case .whole(var walk):
      while let cursor = walk.next {
        let page = origin.page(at: cursor)
        new.append(known(page, at: cursor))
        if !walk.add(page) { brokenPromise = "a cursor was taken for a repeated one" }
      }
      if walk.direction == .start { new.reverse() }
      acceptance = state.accept(&walk, of: flights[id]) { edit, items in
        items = items.map { "\($0)~\(edit)" }
      }
    }
    if acceptance != (isUsed ? .accepted : .ignored) { brokenPromise = "\(acceptance) is wrong" }
    guard isUsed else { return }
    switch load.part {
    case .whole: replaceAll(by: new, load)
    case .page(let edge): add(new[0], at: edge)
    }
  }

  private func known(_ page: Page<String, Int>, at cursor: Int?) -> Known {
    Known(
      number: cursor ?? 0,
      items: page.items,
      hasPrevious: page.previous != nil,
      hasNext: page.next != nil,
      givesNext: page.next != nil
    )
  }

  private mutating func replaceAll(by new: [Known], _ load: Load) {
    // The former pages, unless the list is shorter now.
    var numbers = load.isRefresh ? pages.map(\.number) : [0]
    let isCut = load.isRefresh && style != .backward && origin.isShort
    // A page that was loaded again at the start can deny the page that follows it.
    let isConsistent = pages.dropLast().allSatisfy(\.givesNext)
    if let first = numbers.first, isCut, isConsistent {
      numbers.removeAll { $0 > max(1, first) }
    }
    if new.map(\.number) != numbers { brokenPromise = "other pages: \(new.map(\.number))" }
    let old = pages
    pages = new
    if let last = old.last, load.isRefresh, old.count == new.count, !last.givesNext, last.hasNext {
      pages[new.count - 1].hasNext = true
    }
    for edit in load.edits { change(by: edit) }
  }

  private mutating func add(_ page: Known, at edge: PagesEdge) {
    let neighbor = edge == .start ? pages.first : pages.last
    if page.number != (neighbor?.number ?? 0) + (edge == .start ? -1 : 1) {
      brokenPromise = "the wrong page"
    }
    var page = page
    if edge == .start { page.hasNext = true }
    pages.insert(page, at: edge == .start ? 0 : pages.count)
    while let limit, pages.count > limit {
      pages.remove(at: edge == .start ? pages.count - 1 : 0)
      if let other = running(.page(edge.opposite)) { loads[other].course = .superseded }
      failures.removeAll { $0.part == .page(edge.opposite) }
    }
  }

  private mutating func breakDown(_ id: Int) {
    let isUsed = retire(id, .ended)
    if state.fail(flights[id], with: LoadingFailure.first) != isUsed {
      brokenPromise = "a late failure was used, or none"
    }
    if isUsed { failures.append((loads[id].part, "first", time)) }
  }

  private mutating func abandon(_ id: Int) {
    let isUsed = retire(id, .abandoned)
    if state.abandon(flights[id]) != isUsed { brokenPromise = "a late departure was noticed" }
  }

  // MARK: - Edits

  private mutating func edit() {
    editCount += 1
    let whole = running(.whole)
    let (isChanged, isPublished) = state.edit(editCount) { edit, items in
      items = items.map { "\($0)~\(edit)" }
    }
    if isPublished != !pages.isEmpty { brokenPromise = "an edit was not published" }
    if isChanged != (isPublished || whole != nil) { brokenPromise = "an edit was lost" }
    if let whole { loads[whole].edits.append(editCount) }
    change(by: editCount)
  }

  private mutating func change(by edit: Int) {
    for index in pages.indices { pages[index].items = pages[index].items.map { "\($0)~\(edit)" } }
  }

  // MARK: - The belief

  /// The failures that no later load has replaced; an abandoned or superseded load replaces none.
  private var lastFailure: String? {
    failures.filter { failure in
      !loads.contains { load in
        guard load.time > failure.time else { return false }
        guard [.running, .ended].contains(load.course) else { return false }
        return load.part == .whole || load.part == failure.part || failure.part == .whole
      }
    }.max { $0.time < $1.time }?.name
  }

  private mutating func check() {
    let isLoading = loads.contains { $0.course == .running }
    var belief: String
    if isLoading {
      belief = "loading"
    } else if lastFailure != nil {
      belief = "failed"
    } else {
      belief = pages.isEmpty ? "unknown" : "loaded"
    }
    let words = words(state.current)
    if !words.hasPrefix(belief) { brokenPromise = "\(words) instead of \(belief)" }
    let value = state.current.value
    if value?.items ?? [] != pages.flatMap(\.items) { brokenPromise = "wrong items: \(words)" }
    if value?.pageCount ?? 0 != pages.count { brokenPromise = "a wrong number of pages" }
    if let value {
      if value.isComplete != isComplete(.page(.end)) { brokenPromise = "wrong about the end" }
      if value.isCompleteAtStart != isComplete(.page(.start)) {
        brokenPromise = "wrong about the start"
      }
    }
    let kept = running(.whole).map { loads[$0].edits.count } ?? 0
    if state.keptEditCount != kept { brokenPromise = "an edit is kept without need" }
    for id in loads.indices where state.isCurrent(flights[id]) != (loads[id].course == .running) {
      brokenPromise = "callers would join the wrong load"
    }
  }
}
