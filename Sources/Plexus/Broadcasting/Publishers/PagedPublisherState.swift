/// The pure state of ``PagedPublisher``: the pages, the next cursor, and the current load.
///
/// Invariants:
///
/// - At most one load is current. Its page is used only if there was no reset, and no newer load of the first page.
/// - Pages are dropped by a reset, or replaced by a new first page, but never by a failure.
struct PagedPublisherState<Item: Sendable, Cursor: Sendable>: Sendable {
  /// The requested page.
  enum Request: Sendable {
    /// The first page, to start again.
    case first
    /// The page after the loaded ones.
    case next
  }

  /// The answer to a request.
  enum Answer: Sendable {
    /// There is nothing to load, since the last page is loaded.
    case nothing
    /// The request waits for the current load.
    case joins
    /// The request starts a load, of the page at the cursor or of the first one.
    case begins(PublisherLoad.ID, at: Cursor?)
  }

  /// The load whose page will be used, unless it is superseded.
  private struct CurrentLoad {
    let id: PublisherLoad.ID
    let isOfFirstPage: Bool
    /// The state before it started, which is restored if the load is abandoned.
    let previousState: LoadState<Pages<Item>>
  }

  private(set) var current = LoadState<Pages<Item>>.unknown
  /// The cursor of the next page; `nil` before the first page and after the last.
  private var next: Cursor?
  private var load: CurrentLoad?
  private var lastID = PublisherLoad.ID(rawValue: 0)

  /// The load that further callers join.
  var currentLoad: PublisherLoad.ID? { load?.id }

  /// Requests a page.
  mutating func ask(for request: Request) -> Answer {
    let known = current.value
    if let load {
      // A request to start again is not served by a page that continues the old list.
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

  /// Ends a load.
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

  /// Abandons a load after its last caller has left.
  ///
  /// - Returns: Whether the state has changed.
  mutating func abandonLoad(_ id: PublisherLoad.ID) -> Bool {
    guard let load, load.id == id else { return false }
    current = load.previousState
    self.load = nil
    return true
  }

  /// Drops everything.
  mutating func reset() {
    load = nil
    next = nil
    current = .unknown
  }
}
