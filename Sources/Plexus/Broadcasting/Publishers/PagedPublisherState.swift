/// The synchronous heart of ``PagedPublisher``: which pages are known, where the next one begins, and
/// which load may say more.
///
/// Invariants:
///
/// - At most one load is current. Its page is used only if neither a reset nor a newer load of the
///   first page has made it a late result.
/// - Pages are dropped by a reset, or replaced by a new first page; never by a failure.
struct PagedPublisherState<Item: Sendable, Cursor: Sendable>: Sendable {
  /// Which page is asked for.
  enum Request: Sendable {
    /// The first one, to begin anew.
    case first
    /// The one after those that are known.
    case next
  }

  /// What becomes of a request.
  enum Answer: Sendable {
    /// There is nothing to load: the last page is there.
    case nothing
    /// It waits for the current load.
    case joins
    /// It begins a load, of the page at the cursor or of the first one.
    case begins(PublisherLoad.ID, at: Cursor?)
  }

  /// The load whose page will be used, unless it becomes a late one.
  private struct CurrentLoad {
    let id: PublisherLoad.ID
    let isOfFirstPage: Bool
    /// What was known before it began, which an abandoned load leaves behind.
    let previousState: LoadState<Pages<Item>>
  }

  private(set) var current = LoadState<Pages<Item>>.unknown
  /// Where the next page begins; `nil` before the first page and after the last.
  private var next: Cursor?
  private var load: CurrentLoad?
  private var lastID = PublisherLoad.ID(rawValue: 0)

  /// The load that further callers join.
  var currentLoad: PublisherLoad.ID? { load?.id }

  /// Somebody asks for a page.
  mutating func ask(for request: Request) -> Answer {
    let known = current.value
    if let load {
      // Whoever wants to begin anew is not served by a page that continues the old list.
      if load.isOfFirstPage || request == .next { return .joins }
    } else if request == .next, known?.isComplete == true {
      return .nothing
    }
    let isOfFirstPage = request == .first || known == nil
    lastID = PublisherLoad.ID(rawValue: lastID.rawValue + 1)
    load = CurrentLoad(
      id: lastID,
      isOfFirstPage: isOfFirstPage,
      previousState: load?.previousState ?? current
    )
    current = .loading(previous: known)
    return .begins(lastID, at: isOfFirstPage ? nil : next)
  }

  /// A load has ended.
  ///
  /// - Returns: Whether the state has changed.
  mutating func finishLoad(
    _ id: PublisherLoad.ID,
    with result: Result<Page<Item, Cursor>, any Error>
  ) -> Bool {
    guard let load, load.id == id else { return false }
    let known = current.value
    self.load = nil
    switch result {
    case .success(let page):
      let before = load.isOfFirstPage ? [] : known?.items ?? []
      next = page.next
      current = .loaded(Pages(items: before + page.items, isComplete: page.next == nil))
    case .failure(let error):
      current = .failed(error, previous: known)
    }
    return true
  }

  /// The last caller of a load has left.
  ///
  /// - Returns: Whether the state has changed.
  mutating func abandonLoad(_ id: PublisherLoad.ID) -> Bool {
    guard let load, load.id == id else { return false }
    current = load.previousState
    self.load = nil
    return true
  }

  /// Everything known is to be forgotten.
  mutating func reset() {
    load = nil
    next = nil
    current = .unknown
  }
}
