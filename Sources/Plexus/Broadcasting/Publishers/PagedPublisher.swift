/// A publisher of the loading state of a list that is loaded page by page.
///
/// The publisher fetches one page at a time and stores all pages. A new subscriber receives the current state first,
/// `.unknown` included, and then every change. By default, a slow stream skips to the newest state, and a
/// handler is called for every state.
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
/// page replaces all of them. ``reset()`` drops them, before `.unknown` is published.
///
/// ## Loading
///
/// A call during a load joins it, and shares its page and its error. There is one exception: a request for the first
/// page does not join the load of a later one, but starts again with the first; the later page is not used, and its
/// callers return. A page that arrives after a reset is not used either.
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
/// - ``init(fetch:)``
///
/// ### Loading
/// - ``loadFirstPage()``
/// - ``loadNextPage()``
/// - ``reset()``
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
public final actor PagedPublisher<Item: Sendable, Cursor: Sendable>: StatefulBroadcaster {
  /// The type of the elements that subscribers receive.
  public typealias Element = LoadState<Pages<Item>>

  let core: LoadingCore<Pages<Item>, Cursor>
  private let fetch: @concurrent @Sendable (Cursor?) async throws -> Page<Item, Cursor>

  /// Creates a publisher in the state `.unknown`.
  ///
  /// - Parameter fetch: Fetches the page at a cursor, or the first page for `nil`. Fetches do not overlap, unless the
  ///   first page is requested during the fetch of another. They run in their own tasks, off the caller's actor:
  ///   neither the cancellation nor the task-local values of the caller reach them.
  public init(
    fetch: @escaping @concurrent @Sendable (Cursor?) async throws -> Page<Item, Cursor>
  ) {
    core = LoadingCore()
    self.fetch = fetch
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
  /// The call joins a load of the first page in flight.
  ///
  /// - Throws: The error of the fetch; a `CancellationError` if the calling task is cancelled, without any effect if it
  ///   was cancelled before the call; ``LoadError/recursiveLoad`` if called by the fetch that it would join, or by one
  ///   for which that fetch waits.
  public nonisolated func loadFirstPage() async throws {
    try await load(.first)
  }

  /// Loads the page after the loaded ones, or the first page.
  ///
  /// The call joins any load in flight, also of the first page, and does nothing after the last page.
  ///
  /// - Throws: The same errors as ``loadFirstPage()``.
  public nonisolated func loadNextPage() async throws {
    try await load(.next)
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

  private nonisolated func load(
    _ request: LoadingState<Pages<Item>, Cursor>.Request
  ) async throws {
    _ = try await core.load(request) { [fetch] cursor in
      { try await fetch(cursor) }
    } accept: { state, page, _ in
      state.append(page)
    }
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
