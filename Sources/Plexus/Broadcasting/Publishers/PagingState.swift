/// The pure state of a list that is loaded page by page.
///
/// Invariants:
///
/// - A load of the whole list, which is a new first page or all loaded pages again, is the only one. Otherwise there is at
///   most one load at each end.
/// - The result of a load at an end is used only if the page at that end is still the same.
/// - The pages that have left at an end follow the loaded ones there: the one that has left last comes first.
struct PagingState<Item: Sendable, Cursor: Equatable & Sendable>: LoadingModel {
  typealias Value = Pages<Item>
  typealias Edit = @Sendable (inout [Item]) -> Void

  /// The request of a caller.
  enum Request: Sendable {
    case first, previous, next, refresh
  }

  /// The loads that can be in flight, each of them once.
  enum Part: Sendable {
    case whole, previous, next
  }

  /// The pages that a load fetches.
  struct Start: Sendable {
    var cursors: [Cursor?]
    var order = Order.separate
  }

  /// The way from one page of a load to the others.
  enum Order: Sendable {
    /// Each page has the cursor of the next one.
    case forward
    /// Each page has the cursor of the previous one.
    case backward
    /// Each page is fetched by the cursor that it had.
    case separate
  }

  /// A page and the cursor by which it was fetched: `nil` for the first one.
  struct LoadedPage: Sendable {
    let cursor: Cursor?
    var content: Page<Item, Cursor>
  }

  /// The pages that a load has fetched.
  struct Fetched: Sendable {
    var pages: [LoadedPage]
    let order: Order
    /// The number of edits that they have already, of those since the load has begun.
    var editCount = 0
  }

  struct Load: Sendable {
    let flight: Flight
    /// Whether it loads all pages again.
    var isRefresh = false
    /// The failure before the load.
    let formerFailure: Failure?
  }

  /// The last failure, until the same part is loaded again.
  struct Failure: Sendable {
    let part: Part
    let error: any Error
  }

  /// Everything but the parts that a change has replaced.
  struct Content: Sendable {
    var pages: [LoadedPage] = []
    /// The items of all pages; `nil` before the first page has been loaded.
    var value: Pages<Item>?
    /// The cursors of the pages that have left at the start.
    var leftAtStart: [Cursor?] = []
    /// The cursors of the pages that have left at the end.
    var leftAtEnd: [Cursor?] = []
    var failure: Failure?
    var loads: [Part: Load] = [:]
    /// The edits since a load of the whole list has begun.
    var edits: [Edit] = []
    /// Counts changes of the pages and their items.
    var revision = 0
  }

  private(set) var content = Content()
  private var former: Content?
  /// The largest number of pages; `nil` for no limit.
  var maximumPageCount: Int?

  init() {}

  var current: LoadState<Pages<Item>> {
    let value = content.value
    if !content.loads.isEmpty { return .loading(previous: value) }
    if let failure = content.failure { return .failed(failure.error, previous: value) }
    return value.map { .loaded($0) } ?? .unknown
  }

  mutating func takeFormer() -> Content? {
    former.take()
  }

  func isStale(after age: Duration?, at now: Duration) -> Bool { false }

  func timeUntilStale(after age: Duration?, at now: Duration) -> Duration? { nil }

  /// Changes the content; what it has replaced is released later.
  private mutating func change<Result>(_ body: (inout Content) -> Result) -> Result {
    if former == nil { former = content }
    return body(&content)
  }

  // MARK: - Loads

  func answer(to request: Request, isStale: Bool) -> LoadingAnswer<Pages<Item>> {
    if let whole = content.loads[.whole] {
      // A request for the first page is not served by the pages of a list that may begin elsewhere.
      return request == .first && whole.isRefresh ? .begins : .joins(whole.flight)
    }
    guard let part = part(of: request), let value = content.value else { return .begins }
    if let load = content.loads[part] { return .joins(load.flight) }
    return content.place(beyond: part) == nil ? .known(value) : .begins
  }

  /// The end at which a request is answered; `nil` if the whole list is loaded.
  private func part(of request: Request) -> Part? {
    guard !content.pages.isEmpty else { return nil }
    return switch request {
    case .first, .refresh: nil
    case .previous: .previous
    case .next: .next
    }
  }

  mutating func begin(_ flight: Flight, for request: Request) -> Start {
    let part = part(of: request)
    let isRefresh = request == .refresh && !content.pages.isEmpty
    return change { content in
      guard let part else {
        let failure = content.failure ?? content.loads.values.lazy.compactMap(\.formerFailure).first
        content.edits = []
        content.failure = nil
        // Pages of the ends that arrive later are not used.
        content.loads = [
          .whole: Load(flight: flight, isRefresh: isRefresh, formerFailure: failure)
        ]
        return isRefresh ? content.everything : Start(cursors: [nil])
      }
      let failure = content.failure?.part == part ? content.failure.take() : nil
      content.loads[part] = Load(flight: flight, formerFailure: failure)
      return Start(cursors: [content.place(beyond: part) ?? nil])
    }
  }

  func isCurrent(_ flight: Flight) -> Bool {
    part(of: flight) != nil
  }

  private func part(of flight: Flight) -> Part? {
    content.loads.first { $0.value.flight === flight }?.key
  }

  mutating func fail(_ flight: Flight, with error: any Error) {
    guard let part = part(of: flight) else { return }
    change { content in
      content.loads[part] = nil
      content.edits = []
      content.failure = Failure(part: part, error: error)
    }
  }

  mutating func abandon(_ flight: Flight) -> Bool {
    guard let part = part(of: flight) else { return false }
    change { content in
      let load = content.loads.removeValue(forKey: part)
      content.edits = []
      content.failure = content.failure ?? load?.formerFailure
    }
    return true
  }

  /// Records the pages that a load has brought.
  ///
  /// - Parameters:
  ///   - fetched: The pages.
  ///   - flight: The load, which is current.
  /// - Returns: The effect on the list.
  mutating func accept(_ fetched: Fetched, of flight: Flight) -> LoadingVerdict<Fetched> {
    guard let part = part(of: flight), let page = fetched.pages.first else { return .accepted }
    if part == .whole {
      let edits = content.edits
      guard edits.count == fetched.editCount else {
        return .outdated { fetched.applying(edits) }
      }
      replaceAll(by: fetched)
      return .accepted
    }
    let (repeats, limit) = (content.repeats(page, at: part), maximumPageCount)
    change { content in
      content.loads[part] = nil
      content.add(page, at: part, isLast: repeats, limit)
      if repeats { content.failure = Failure(part: part, error: LoadError.repeatedCursor) }
    }
    return repeats ? .rejected(LoadError.repeatedCursor) : .accepted
  }

  private mutating func replaceAll(by fetched: Fetched) {
    change { content in
      let isRefresh = content.loads[.whole]?.isRefresh ?? false
      content.loads = [:]
      content.edits = []
      content.pages = fetched.pages
      // The new pages say what follows them; where they do not, it is what has left.
      if !isRefresh || fetched.order == .forward { content.leftAtEnd = [] }
      if !isRefresh || fetched.order == .backward { content.leftAtStart = [] }
      content.combine()
    }
  }

  /// Drops everything.
  mutating func reset() {
    change { content in
      content = Content(revision: content.revision + 1)
    }
  }

  // MARK: - Edits

  /// Replaces the items of the pages, unless they have changed since a revision.
  ///
  /// - Parameters:
  ///   - pages: The new items of each page.
  ///   - revision: The revision of the items from which they were made.
  ///   - edit: The edit that has made them. It is applied again to pages that replace these.
  /// - Returns: Whether they were replaced.
  mutating func replace(_ pages: [[Item]], at revision: Int, by edit: @escaping Edit) -> Bool {
    guard content.revision == revision else { return false }
    change { content in
      if content.loads[.whole] != nil { content.edits.append(edit) }
      guard !pages.isEmpty else { return }
      for (index, items) in pages.enumerated() { content.pages[index].content.items = items }
      content.combine()
    }
    return true
  }
}

extension PagingState.Content {
  /// Returns the cursor of the page that follows the loaded ones at an end; `nil` if there is none.
  func place(beyond part: PagingState.Part) -> Cursor?? {
    switch part {
    case .whole: nil
    case .next: pages.last?.content.next.map { .some($0) } ?? leftAtEnd.last
    case .previous: pages.first?.content.previous.map { .some($0) } ?? leftAtStart.last
    }
  }

  /// The pages that have to be loaded again, and the way from one to the others.
  var everything: PagingState.Start {
    let order: PagingState.Order =
      if pages.dropLast().allSatisfy({ $0.content.next != nil }) {
        .forward
      } else if pages.dropFirst().allSatisfy({ $0.content.previous != nil }) {
        .backward
      } else {
        .separate
      }
    return PagingState.Start(cursors: pages.map(\.cursor), order: order)
  }

  /// Returns whether the page after a new one is there already.
  func repeats(_ page: PagingState.LoadedPage, at part: PagingState.Part) -> Bool {
    let (following, left) =
      part == .previous
      ? (page.content.previous, leftAtEnd) : (page.content.next, leftAtStart)
    guard let following else { return false }
    return page.cursor == following || pages.contains { $0.cursor == following }
      || left.contains(following)
  }

  /// Adds a page at an end. Pages leave at the other one.
  mutating func add(
    _ page: PagingState.LoadedPage,
    at part: PagingState.Part,
    isLast: Bool,
    _ limit: Int?
  ) {
    var page = page
    if part == .previous {
      _ = leftAtStart.popLast()
      if isLast { (page.content.previous, leftAtStart) = (nil, []) }
      pages.insert(page, at: 0)
    } else {
      _ = leftAtEnd.popLast()
      if isLast { (page.content.next, leftAtEnd) = (nil, []) }
      pages.append(page)
    }
    while let limit, pages.count > limit {
      if part == .previous {
        leftAtEnd.append(pages.removeLast().cursor)
        loads[.next] = nil
      } else {
        leftAtStart.append(pages.removeFirst().cursor)
        loads[.previous] = nil
      }
    }
    combine()
  }

  /// Updates the value after a change of the pages.
  mutating func combine() {
    revision += 1
    value = Pages(
      items: pages.flatMap(\.content.items),
      isComplete: place(beyond: .next) == nil,
      isCompleteAtStart: place(beyond: .previous) == nil,
      pageCount: pages.count
    )
  }
}

extension PagingState.Fetched {
  /// Returns the pages with all edits that they do not have yet.
  func applying(_ edits: [PagingState.Edit]) -> Self {
    var copy = self
    for edit in edits.dropFirst(editCount) {
      for index in copy.pages.indices { edit(&copy.pages[index].content.items) }
    }
    copy.editCount = edits.count
    return copy
  }
}
