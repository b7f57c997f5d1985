/// The pure state of a list that is loaded page by page.
///
/// Invariants:
///
/// - A load of the whole list, which is a new first page or all loaded pages again, is the only load. Otherwise, there is
///   at most one load at each edge.
/// - A load at an edge loads the page beyond the outermost one there. If that page leaves, the load is superseded.
/// - The published state is a function of the pages, the loads and the failures.
///
/// Of the user's types, only `==` of cursors is called, by ``accept(_:of:)`` and the walk. These events and
/// edits are applied to a copy of the state, with no lock held, which replaces the state if its version is still the same.
struct PagingState<Item: Sendable, Cursor: Equatable & Sendable, Edit: Sendable>: LoadingModel {
  typealias Value = Pages<Item>

  /// The request of a caller.
  enum Request: Hashable, Sendable {
    case first
    case refresh
    case page(PagesEdge)
  }

  /// The place at which a load begins.
  enum Start: Sendable {
    /// The page at a cursor.
    case page(Cursor?)
    /// The whole list.
    case whole(PagesWalk<Item, Cursor>)
  }

  /// The parts of a list that are loaded, and can fail, independently.
  enum Part: Hashable, Sendable {
    case whole
    case page(PagesEdge)
  }

  /// The last failure of a part, until that part is loaded again.
  ///
  /// A load of the whole list also replaces failures at the edges, and a load at an edge that of the whole list.
  struct Failure: Sendable {
    let part: Part
    let error: any Error
    /// Its number in the order of failures.
    let number: Int
  }

  /// A load of the whole list.
  struct WholeLoad: Sendable {
    let flight: Flight
    let isRefresh: Bool
    /// The failures that the load has replaced.
    let replaced: [Failure]
    /// The edits since the load has begun, which are applied to its pages, too.
    var edits: [Edit] = []
  }

  /// A load of the page beyond an edge.
  struct PageLoad: Sendable {
    let flight: Flight
    let cursor: Cursor?
    /// The failures that the load has replaced.
    var replaced: [Failure]
  }

  /// The effect of the result of a load.
  enum Acceptance: Hashable, Sendable {
    /// The load was superseded, or the list was reset.
    case ignored
    case accepted
    /// The cursor of a page returns to a page that is already in the list.
    case repeated
  }

  /// Everything but the parts that a change has replaced.
  struct Content: Sendable {
    var list = PagesList<Item, Cursor>()
    /// The loaded pages as one; `nil` before the first page.
    var value: Pages<Item>?
    var whole: WholeLoad?
    var ends = PagesEdge.Pair<PageLoad?>(start: nil, end: nil)
    /// The failures, at most one for each part.
    var failures: [Failure] = []
    var failureCount = 0
  }

  private let maximumPageCount: Int?
  private var content = Content()
  private var former: Content?
  /// Counts the changes.
  private(set) var version: UInt64 = 0

  /// - Parameter maximumPageCount: The maximum number of pages, at least 1; `nil` for no limit.
  init(maximumPageCount: Int? = nil) {
    self.maximumPageCount = maximumPageCount
  }

  var current: LoadState<Pages<Item>> {
    let value = content.value
    if isLoading { return .loading(previous: value) }
    if let failure = content.failures.max(by: { $0.number < $1.number }) {
      return .failed(failure.error, previous: value)
    }
    return value.map { .loaded($0) } ?? .unknown
  }

  private var isLoading: Bool {
    content.whole != nil || content.ends.start != nil || content.ends.end != nil
  }

  /// The number of edits that are kept until the load of the whole list ends.
  var keptEditCount: Int { content.whole?.edits.count ?? 0 }

  mutating func takeFormer() -> Content? {
    former.take()
  }

  func isStale(after age: Duration?, at now: Duration) -> Bool { false }

  func timeUntilStale(after age: Duration?, at now: Duration) -> Duration? { nil }

  /// Changes the content; the replaced parts are kept until they are taken.
  private mutating func change(_ body: (inout Content) -> Void) {
    if former == nil { former = content }
    version &+= 1
    body(&content)
  }

  /// Drops everything.
  mutating func reset() {
    change { $0 = Content() }
  }

  // MARK: - Requests

  func answer(to request: Request, isStale: Bool) -> LoadingAnswer<Pages<Item>> {
    if let whole = content.whole {
      // A request for the first page is not served by a refresh, which can begin elsewhere and takes longer.
      return request == .first && whole.isRefresh ? .begins : .joins(whole.flight)
    }
    guard case .page(let edge) = request, let value = content.value else { return .begins }
    if let load = content.ends[edge] { return .joins(load.flight) }
    return content.list.isComplete(at: edge) ? .known(value) : .begins
  }

  mutating func begin(_ flight: Flight, for request: Request) -> Start {
    if case .page(let edge) = request, let cursor = content.list.cursor(beyond: edge) {
      change { content in
        let replaced = content.takeFailures { $0 == .page(edge) || $0 == .whole }
        content.ends[edge] = PageLoad(flight: flight, cursor: cursor, replaced: replaced)
      }
      return .page(cursor)
    }
    let isRefresh = request == .refresh && content.value != nil
    let walk = isRefresh ? content.list.refreshingWalk : PagesWalk()
    change { content in
      // Pages beyond the edges that arrive later are not used.
      for part in [Part.whole, .page(.start), .page(.end)] { content.abandon(part) }
      let replaced = content.takeFailures { _ in true }
      content.whole = WholeLoad(flight: flight, isRefresh: isRefresh, replaced: replaced)
    }
    return .whole(walk)
  }

  // MARK: - The end of a load

  func isCurrent(_ flight: Flight) -> Bool {
    part(of: flight) != nil
  }

  private func part(of flight: Flight) -> Part? {
    if content.whole?.flight === flight { return .whole }
    return PagesEdge.allCases.first { content.ends[$0]?.flight === flight }.map { .page($0) }
  }

  /// Records that a load has failed.
  ///
  /// - Returns: Whether the state has changed.
  mutating func fail(_ flight: Flight, with error: any Error) -> Bool {
    guard let part = part(of: flight) else { return false }
    change { content in
      content.finish(part)
      content.add(error, of: part)
    }
    return true
  }

  mutating func abandon(_ flight: Flight) -> Bool {
    guard let part = part(of: flight) else { return false }
    change { $0.abandon(part) }
    return true
  }

  /// Records the page that a load beyond an edge has brought.
  mutating func accept(_ page: Page<Item, Cursor>, of flight: Flight) -> Acceptance {
    guard case .page(let edge) = part(of: flight), let load = content.ends[edge] else {
      return .ignored
    }
    let page = LoadedPage(cursor: load.cursor, page)
    let limit = maximumPageCount ?? .max
    var isRepeated = false
    change { content in
      content.finish(.page(edge))
      isRepeated = !content.list.add(page, at: edge)
      if isRepeated { content.add(LoadError.repeatedCursor, of: .page(edge)) }
      while content.list.pages.count > limit {
        content.list.removePage(at: edge.opposite)
        // A load or a failure there is of a page that no longer follows the list.
        content.ends[edge.opposite] = nil
        _ = content.takeFailures { $0 == .page(edge.opposite) }
      }
      content.value = content.list.value
    }
    return isRepeated ? .repeated : .accepted
  }

  /// Records the pages that a load of the whole list has brought.
  ///
  /// - Parameters:
  ///   - walk: The pages, which receive the edits that were made since the load has begun. If the state has changed
  ///     meanwhile, so that this event is repeated, they receive only the new ones.
  ///   - flight: The load.
  ///   - apply: Applies an edit to the items of a page.
  /// - Returns: Whether the pages are used.
  mutating func accept(
    _ walk: inout PagesWalk<Item, Cursor>,
    of flight: Flight,
    _ apply: (Edit, inout [Item]) -> Void
  ) -> Acceptance {
    guard let whole = content.whole, whole.flight === flight else { return .ignored }
    for edit in whole.edits.dropFirst(walk.editCount) { walk.edit { apply(edit, &$0) } }
    var list = content.list
    list.replace(by: walk, isRefresh: whole.isRefresh)
    change { content in
      content.finish(.whole)
      content.list = list
      content.value = list.value
    }
    return .accepted
  }

  // MARK: - Edits

  /// Changes the items of every page, and keeps the edit for the pages of a load of the whole list.
  ///
  /// - Parameters:
  ///   - edit: The edit.
  ///   - apply: Applies it to the items of a page.
  /// - Returns: Whether the state has changed, and whether subscribers receive that.
  mutating func edit(
    _ edit: Edit,
    _ apply: (Edit, inout [Item]) -> Void
  ) -> (isChanged: Bool, isPublished: Bool) {
    let hasPages = content.value != nil
    guard hasPages || content.whole != nil else { return (false, false) }
    var list = content.list
    list.edit { apply(edit, &$0) }
    change { content in
      content.whole?.edits.append(edit)
      guard hasPages else { return }
      content.list = list
      content.value = list.value
    }
    return (true, hasPages)
  }
}

extension PagingState.Content {
  mutating func add(_ error: any Error, of part: PagingState.Part) {
    failureCount += 1
    failures.append(PagingState.Failure(part: part, error: error, number: failureCount))
  }

  /// Takes out the failures of some parts.
  mutating func takeFailures(
    of isIncluded: (PagingState.Part) -> Bool
  ) -> [PagingState.Failure] {
    let taken = failures.filter { isIncluded($0.part) }
    failures.removeAll { isIncluded($0.part) }
    return taken
  }

  /// Ends the load of a part.
  mutating func finish(_ part: PagingState.Part) {
    switch part {
    case .whole:
      whole = nil
    case .page(let edge):
      ends[edge] = nil
      // The failure of the whole list does not come back, even if the other load is or was abandoned.
      failures.removeAll { $0.part == .whole }
      ends[edge.opposite]?.replaced.removeAll { $0.part == .whole }
    }
  }

  /// Ends the load of a part, if any, as if it had not begun.
  mutating func abandon(_ part: PagingState.Part) {
    switch part {
    case .whole: failures += whole.take()?.replaced ?? []
    case .page(let edge): failures += ends[edge].take()?.replaced ?? []
    }
  }
}
