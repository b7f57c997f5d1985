/// A publisher of the loading state of a list that is loaded page by page.
///
/// The publisher fetches pages at either end of the list and stores them. A new subscriber receives the current state
/// first, `.unknown` included, and then every change. By default, a slow stream skips to the newest state, and a handler is
/// called for every state.
///
/// ```swift
/// let letters = PagedPublisher<String, Int> { cursor in
///   let page = cursor ?? 0
///   return Page(items: ["a\(page)", "b\(page)"], next: page < 2 ? page + 1 : nil)
/// }
/// try await letters.loadFirstPage()
/// try await letters.loadNextPage()
/// print(letters.state.value?.items ?? [])
/// // Prints "["a0", "b0", "a1", "b1"]"
/// ```
///
/// ## The previous pages
///
/// The pages survive a load and its failure as the previous value, and a failed page can be loaded again. A new first
/// page replaces all of them, and so do the pages of a ``refresh()`` once all have arrived. ``reset()`` drops them, before
/// `.unknown` is published.
///
/// ## Loading
///
/// A call during a load of the same page joins it, and shares its page and its error. The two ends of the list can be
/// loaded at the same time. A load of the first page and a refresh are loads of the whole list:
///
/// - They do not join the load of a page at an end. Its page is not used, and its callers return.
/// - Requests for pages at the ends join them.
/// - A refresh joins a load of the first page. A request for the first page takes the place of a refresh, whose callers
///   return.
///
/// A page that arrives after a reset is not used either. While anything is being loaded, the state is `.loading`.
/// Afterwards, it is `.failed` if the last attempt to load one of the parts has failed: the list, or a page at an end.
///
/// ## Both ends
///
/// A list that begins in its middle, or with its newest page, returns pages with a cursor of the previous one. With a
/// `maximumPageCount`, pages beyond it leave at the end at which nothing was loaded, and can be loaded again: by the
/// cursors that their neighbors have, or by those with which they were fetched, which the publisher remembers. If the page
/// beyond them is being loaded then, it is not used.
///
/// If a page is followed by one that the list has already, it is added, and the list is complete at this end: the callers
/// and the state get ``LoadError/repeatedCursor``. Cursors are compared with the lock of the publisher: `==` must not call
/// it.
///
/// ## Cancellation
///
/// A cancelled caller throws a `CancellationError` immediately. When the last caller is cancelled, the fetch is
/// cancelled, and the state from before the load is published.
///
/// ## Release
///
/// Releasing the last reference to a publisher ends its streams. A caller that waits for a page holds a reference.
///
/// ## Topics
///
/// ### Creating a publisher
/// - ``init(maximumPageCount:fetch:)``
///
/// ### Loading
/// - ``loadFirstPage()``
/// - ``loadNextPage()``
/// - ``loadPreviousPage()``
/// - ``refresh()``
/// - ``reset()``
///
/// ### Editing
/// - ``edit(_:)``
///
/// ### Reading
/// - ``state``
/// - ``current``
///
/// ### Subscribing
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
///
/// ### Counting subscribers
/// - ``subscriberCount``
/// - ``subscriberCounts(bufferingPolicy:)``
/// - ``waitForSubscriber()``
public final actor PagedPublisher<Item: Sendable, Cursor: Equatable & Sendable>:
  StatefulBroadcaster
{
  /// The type of the elements that subscribers receive.
  public typealias Element = LoadState<Pages<Item>>

  typealias Fetch = @concurrent @Sendable (Cursor?) async throws -> Page<Item, Cursor>

  let core: LoadingCore<PagingState<Item, Cursor>>
  private let fetch: Fetch

  /// Creates a publisher in the state `.unknown`.
  ///
  /// - Precondition: The maximum is at least 1.
  ///
  /// - Parameters:
  ///   - maximumPageCount: The number of pages that are stored at most; `nil` for no limit.
  ///   - fetch: Fetches the page at a cursor, or the first page for `nil`. Fetches overlap if both ends are loaded, or if
  ///     the whole list is requested during the fetch of another page. They run in their own tasks, off the caller's actor:
  ///     neither the cancellation nor the task-local values of the caller reach them.
  public init(
    maximumPageCount: Int? = nil,
    fetch: @escaping @concurrent @Sendable (Cursor?) async throws -> Page<Item, Cursor>
  ) {
    precondition(
      maximumPageCount ?? 1 >= 1,
      "A PagedPublisher stores at least one page: maximumPageCount has to be 1 or more, or nil."
    )
    core = LoadingCore()
    self.fetch = fetch
    core.state.withLock { $0.loading.maximumPageCount = maximumPageCount }
  }

  deinit {
    core.close()
  }

  /// The current state.
  public nonisolated var state: LoadState<Pages<Item>> {
    core.current
  }

  /// The current state.
  public nonisolated var current: LoadState<Pages<Item>> { state }

  /// The current number of subscribers, including streams and handlers.
  public nonisolated var subscriberCount: Int {
    core.hub.subscriberCount
  }

  /// Registers a subscriber, which receives the current state and then every change.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<LoadState<Pages<Item>>> = .bufferingNewest(1)
  ) -> AsyncStream<LoadState<Pages<Item>>> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber, which receives the current state and then every change.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends when it is dropped or the task that iterates it is cancelled.
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<LoadState<Pages<Item>>> = .bufferingNewest(1)
  ) -> Subscription<LoadState<Pages<Item>>> {
    registered(bufferingPolicy: bufferingPolicy)
  }

  /// Loads the first page, which replaces all pages when it arrives.
  ///
  /// The call joins a load of the first page in flight. Others in flight are not used: their callers return.
  ///
  /// - Throws: The error of the fetch; a `CancellationError` if the calling task is cancelled, without any effect if it
  ///   was cancelled before the call; ``LoadError/recursiveLoad`` if called by the fetch that it would join, or by one
  ///   for which that fetch waits.
  public nonisolated func loadFirstPage() async throws {
    try await load(.first)
  }

  /// Loads the page after the loaded ones, or the first page.
  ///
  /// The call joins a load of this page or of the whole list in flight, and does nothing after the last page.
  ///
  /// - Throws: The same errors as ``loadFirstPage()``; ``LoadError/repeatedCursor`` if the page is followed by one that the
  ///   list has already.
  public nonisolated func loadNextPage() async throws {
    try await load(.next)
  }

  /// Loads the page before the loaded ones, or the first page.
  ///
  /// The call joins a load of this page or of the whole list in flight, and does nothing before the earliest page.
  ///
  /// - Throws: The same errors as ``loadNextPage()``.
  public nonisolated func loadPreviousPage() async throws {
    try await load(.previous)
  }

  /// Loads all loaded pages again, in order, or the first page if there are none.
  ///
  /// The pages are fetched one after another, as many as there are, by the cursors of the new ones; the list ends sooner if
  /// the new pages do. The old list stays until all of them have arrived, and after a failure. Edits that are made meanwhile
  /// are applied to the new pages, too.
  ///
  /// The call joins a load of the whole list in flight.
  ///
  /// - Throws: The same errors as ``loadNextPage()``. After a ``LoadError/repeatedCursor`` the old list stays, too.
  public nonisolated func refresh() async throws {
    try await load(.refresh)
  }

  /// Changes the items of the loaded pages, and publishes the new state.
  ///
  /// The change is visible when this method returns. Pages that are loaded later at an end are added as they are. If the
  /// whole list is being loaded, the change is applied to the new pages, too: until then, the publisher keeps the closure.
  ///
  /// - Parameter body: Changes the items of a page. It is called for each page in order, with no lock held, and once more
  ///   for all pages if the list has changed meanwhile.
  public nonisolated func edit(_ body: @escaping @Sendable (inout [Item]) -> Void) {
    while true {
      let (pages, revision) = core.state.withLock { state in
        (state.loading.content.pages.map(\.content.items), state.loading.content.revision)
      }
      var new = pages
      for index in new.indices { body(&new[index]) }
      let isDone = core.change { state, publication, _ in
        guard state.replace(new, at: revision, by: body) else { return false }
        if !new.isEmpty { publication = .state }
        return true
      }
      if isDone { return }
    }
  }

  /// Drops all pages and publishes `.unknown`.
  ///
  /// The pages are no longer accessible through ``state`` when subscribers receive `.unknown`, and a page in flight is
  /// not used. After this method has returned, no subscriber receives an earlier state: unread states are skipped under
  /// every buffering policy.
  public nonisolated func reset() {
    core.change { state, publication, _ in
      state.reset()
      publication = .reset
    }
  }

  private nonisolated func load(_ request: PagingState<Item, Cursor>.Request) async throws {
    _ = try await core.load(request) { [fetch] start in
      { try await start.pages(by: fetch) }
    } accept: { state, fetched, flight, _ in
      state.accept(fetched, of: flight)
    }
  }
}

extension PagingState.Start {
  /// Fetches the pages, one after another.
  fileprivate func pages(
    by fetch: PagedPublisher<Item, Cursor>.Fetch
  ) async throws -> PagingState.Fetched {
    var pages: [PagingState.LoadedPage] = []
    var cursor = (order == .backward ? cursors.last : cursors.first) ?? nil
    while true {
      let page = try await fetch(cursor)
      pages.append(PagingState.LoadedPage(cursor: cursor, content: page))
      guard pages.count < cursors.count else { break }
      try Task.checkCancellation()
      if order == .separate {
        cursor = cursors[pages.count]
        continue
      }
      guard let following = order == .forward ? page.next : page.previous else { break }
      if pages.contains(where: { $0.cursor == following }) { throw LoadError.repeatedCursor }
      cursor = following
    }
    if order == .backward { pages.reverse() }
    return PagingState.Fetched(pages: pages, order: order)
  }
}

extension PagedPublisher: HubBacked {
  nonisolated func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Element>, _ replay: [Element]) -> Result
  ) -> Result {
    core.withHub(body)
  }
}

extension PagedPublisher {
  /// Returns the current number of subscribers, followed by every change.
  ///
  /// The stream does not count as a subscriber, and ends when the publisher is released. For details, see
  /// ``Messenger/subscriberCounts(bufferingPolicy:)``.
  ///
  /// - Parameter bufferingPolicy: The policy for numbers that the reader has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscriberCounts(
    bufferingPolicy: BufferingPolicy<Int> = .unbounded
  ) -> AsyncStream<Int> {
    core.hub.counts(bufferingPolicy: bufferingPolicy)
  }

  /// Waits until there is a subscriber, which can be a stream or a handler.
  ///
  /// - Throws: A `CancellationError` if the calling task is cancelled.
  public nonisolated func waitForSubscriber() async throws {
    try await core.hub.waitForSubscriber(retaining: self)
  }
}
