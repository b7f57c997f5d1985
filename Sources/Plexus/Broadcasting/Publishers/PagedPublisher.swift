/// A publisher of the loading state of a list that is loaded page by page.
///
/// The publisher loads pages at both ends of the list and stores them. A new subscriber receives the current state first,
/// `.unknown` included, and then every change. By default, a slow stream skips to the newest state, and a handler is
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
/// ## Loading
///
/// ``loadNextPage()`` and ``loadPreviousPage()`` load at the two ends of the list, also at the same time. ``loadFirstPage()``
/// and ``refresh()`` load the whole list. A call that needs a page in flight joins its load, and shares its error.
///
/// A load of the whole list supersedes the loads at the ends, and ``loadFirstPage()`` also supersedes a refresh. Pages of
/// a superseded load are not used, and its callers return without an error. The same applies to loads in flight at a reset.
///
/// ## States
///
/// The state is `.loading` while any load is in flight, with the loaded pages as the previous value. They survive a failed
/// load, too; only ``reset()`` drops them, before `.unknown` is published. After a failed load, the state is `.failed`
/// until the same end is loaded again, or the whole list. A failed load of the whole list is also replaced by a load at
/// one of the ends.
///
/// ## Pages at both ends
///
/// A list that starts in the middle, or with its newest items, gives ``Page/previous``. With `maximumPageCount`, the list
/// is a window: when a page is added at one end, pages leave at the other end. A page that has left can be loaded again,
/// by the cursor of its neighbor, or else by the cursor with which it was loaded. The list remembers the cursors of all
/// pages that have left, until the next load of the first page or reset. A load next to a page that leaves is superseded.
///
/// ## Repeated pages
///
/// If a page gives the cursor of a page that is already in the list, or its own, the list would never end. The page is
/// kept, the list is complete at that end, and the callers and the state receive ``LoadError/repeatedCursor``. A page that
/// is requested again nevertheless replaces the items of the first one in its place. A refresh that returns to a page
/// fails, and the old pages stay. The first page is known by the cursor with which a neighbor has named it; in a list that
/// is loaded forward only, a return to it is noticed one page later. Cursors are compared with no lock held.
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

  let loader: PageLoader<Item, Cursor>

  nonisolated var core: LoadingCore<PageLoader<Item, Cursor>.Model> { loader.core }

  /// Creates a publisher in the state `.unknown`.
  ///
  /// - Parameters:
  ///   - maximumPageCount: The maximum number of loaded pages; `nil` for no limit.
  ///   - fetch: Fetches the page at a cursor, or the first page for `nil`. Fetches overlap only if both ends are loaded at
  ///     the same time, or if a load of the whole list starts during another load. They run in their own tasks, off the
  ///     caller's actor: neither the cancellation nor the task-local values of the caller reach them.
  /// - Precondition: The maximum number of pages is at least 1.
  public init(
    maximumPageCount: Int? = nil,
    fetch: @escaping @concurrent @Sendable (Cursor?) async throws -> Page<Item, Cursor>
  ) {
    precondition(
      maximumPageCount ?? 1 >= 1,
      "A list needs room for one page; use nil for no limit"
    )
    let state = PageLoader<Item, Cursor>.Model(maximumPageCount: maximumPageCount)
    loader = PageLoader(core: LoadingCore(state), fetch: fetch)
  }

  deinit {
    loader.core.close()
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
  /// The call joins a load of the first page in flight, and supersedes all other loads.
  ///
  /// - Throws: The error of the fetch; a `CancellationError` if the calling task is cancelled, without any effect if it
  ///   was cancelled before the call; ``LoadError/recursiveLoad`` if called by the fetch that it would join, or by one
  ///   for which that fetch waits.
  public nonisolated func loadFirstPage() async throws {
    try await loader.load(.first)
  }

  /// Loads the page after the loaded ones, or the first page if there are none.
  ///
  /// The call joins a load of that page or of the whole list in flight, and does nothing after the last page.
  ///
  /// - Throws: The same errors as ``loadFirstPage()``; ``LoadError/repeatedCursor`` if the list returns to a page that is
  ///   loaded already.
  public nonisolated func loadNextPage() async throws {
    try await loader.load(.page(.end))
  }

  /// Loads the page before the loaded ones, or the first page if there are none.
  ///
  /// The call joins a load of that page or of the whole list in flight, and does nothing if no page precedes the loaded
  /// ones.
  ///
  /// - Throws: The same errors as ``loadNextPage()``.
  public nonisolated func loadPreviousPage() async throws {
    try await loader.load(.page(.start))
  }

  /// Loads all loaded pages again, in order, or the first page if there are none.
  ///
  /// The new pages are fetched one after another, each by the cursor that the new page before it gives, until there are
  /// as many as before or the list ends. They replace the old ones together, once all have arrived. If a fetch fails, the
  /// old pages stay. For the edits that are made meanwhile, see ``edit(_:)``.
  ///
  /// The call joins a load of the whole list in flight, also of the first page, and supersedes all other loads.
  ///
  /// - Throws: The same errors as ``loadNextPage()``.
  public nonisolated func refresh() async throws {
    try await loader.load(.refresh)
  }

  /// Changes the items of the loaded pages, and publishes the new state before it returns.
  ///
  /// ```swift
  /// let letters = PagedPublisher<String, Int> { _ in Page(items: ["a", "b"], next: nil) }
  /// try await letters.loadFirstPage()
  /// letters.edit { items in items.removeAll { $0 == "a" } }
  /// print(letters.state.value?.items ?? [])  // Prints "["b"]"
  /// ```
  ///
  /// The body is called for each loaded page in order, with no lock held. If the list changes meanwhile, the body is
  /// called again for the changed list, so it should have no side effects. It must not edit the same list.
  ///
  /// A page that is loaded later at an end of the list is added unchanged, and leaves the changes of the others alone.
  /// If a load of the whole list is in flight, its pages are changed, too, before they replace the old ones. Until that
  /// load ends, the list keeps every body, in order. Without pages and without such a load, the call has no effect.
  ///
  /// - Parameter body: A closure that changes the items of a page.
  public nonisolated func edit(_ body: @escaping @Sendable (inout [Item]) -> Void) {
    loader.edit(body)
  }

  /// Drops all pages and publishes `.unknown`.
  ///
  /// The pages are no longer accessible through ``state`` when subscribers receive `.unknown`, and pages in flight are
  /// not used. After this method has returned, no subscriber receives an earlier state: unread states are skipped under
  /// every buffering policy.
  public nonisolated func reset() {
    loader.reset()
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
