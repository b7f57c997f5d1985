/// The state of a list that is loaded page by page, told to any number of subscribers.
///
/// The publisher is given what fetches one page, and keeps the pages that it has fetched. A new
/// subscriber gets the current state at once, `.unknown` included, and then every change. By default a
/// slow subscriber skips ahead to the newest state.
///
/// ```swift
/// let letters = PagedPublisher<String, Int> { cursor in
///   let page = cursor ?? 0
///   return Page(items: ["a\(page)", "b\(page)"], next: page < 2 ? page + 1 : nil)
/// }
/// try await letters.loadFirstPage()
/// try await letters.loadNextPage()
/// print(letters.state.value?.items ?? [])  // a0, b0, a1, b1
/// ```
///
/// ## What survives
///
/// The pages survive a load and its failure as the previous value; a failed page can be asked for again.
/// A new first page takes the place of them all. ``reset()`` drops them, before `.unknown` is
/// published.
///
/// ## Loading
///
/// Calls while a page is being loaded join that load, and so share its page and its error. With one
/// exception: whoever asks for the first page is not served by a later one. It begins anew, and the page
/// that was under way is not used any more when it arrives; those who wait for it return then. A page
/// that arrives after a reset is not used either.
///
/// ## Cancellation
///
/// A caller that is cancelled leaves at once with a `CancellationError`. When the last one has left,
/// the fetch is cancelled and the state goes back to what it was before.
///
/// ## Release
///
/// The last reference to a publisher ends its streams. A caller that waits for a page holds one.
public final actor PagedPublisher<Item: Sendable, Cursor: Sendable>: StatefulBroadcaster {
  /// The type of the elements that subscribers receive.
  public typealias Element = LoadState<Pages<Item>>

  let core: PagedPublisherCore<Item, Cursor>

  /// Creates a publisher of a list of which nothing is known.
  ///
  /// - Parameter fetch: What fetches the page at a cursor, and the first one without. One fetch runs at
  ///   a time, unless the first page is asked for during that of another. It runs off the caller's
  ///   actor and apart from the caller's task: neither its cancellation nor its task-local values
  ///   reach it.
  public init(
    fetch: @escaping @concurrent @Sendable (Cursor?) async throws -> Page<Item, Cursor>
  ) {
    core = PagedPublisherCore(fetch: fetch)
  }

  deinit {
    core.hub.finish()
  }

  /// What is known at this moment.
  public nonisolated var state: LoadState<Pages<Item>> {
    core.current
  }

  /// The state at this moment.
  public nonisolated var current: LoadState<Pages<Item>> { state }

  /// The current number of subscribers, including streams and handlers.
  public nonisolated var subscriberCount: Int {
    core.hub.subscriberCount
  }

  /// Registers a subscriber and returns the current state and those that follow.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling its task ends the subscription.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<LoadState<Pages<Item>>> = .bufferingNewest(1)
  ) -> AsyncStream<LoadState<Pages<Item>>> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber and returns the current state and those that follow.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends when it is dropped or its task is cancelled.
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<LoadState<Pages<Item>>> = .bufferingNewest(1)
  ) -> Subscription<LoadState<Pages<Item>>> {
    registered(bufferingPolicy: bufferingPolicy)
  }

  /// Loads the first page, which takes the place of all that are known when it arrives.
  ///
  /// It joins a load of the first page that is under way.
  ///
  /// - Throws: The error of the fetch; a `CancellationError` if the calling task is cancelled, in which
  ///   case nothing has changed if it was so from the beginning; ``LoadError/recursiveLoad`` if called
  ///   by the fetch that it would join, or by one for which that fetch waits in turn.
  public nonisolated func loadFirstPage() async throws {
    try await core.load(.first)
  }

  /// Loads the page after those that are known, or the first one if there are none.
  ///
  /// It joins any load that is under way, also that of the first page, and does nothing if the last page
  /// is there.
  ///
  /// - Throws: As ``loadFirstPage()``.
  public nonisolated func loadNextPage() async throws {
    try await core.load(.next)
  }

  /// Forgets everything and publishes `.unknown`.
  ///
  /// The pages can no longer be reached through ``state`` when subscribers receive `.unknown`, and a page
  /// in flight is not used. Once this has returned, no subscriber receives a state from before it: states
  /// that a subscriber has not read yet are skipped under every buffering policy.
  public nonisolated func reset() {
    core.reset()
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
  /// The rules are those of ``Messenger/subscriberCounts(bufferingPolicy:)``: it is not a subscriber, and
  /// ends with the publisher.
  ///
  /// - Parameter bufferingPolicy: The policy for numbers that the reader has not read yet.
  /// - Returns: The stream. Dropping it or cancelling its task ends the subscription.
  public nonisolated func subscriberCounts(
    bufferingPolicy: BufferingPolicy<Int> = .unbounded
  ) -> AsyncStream<Int> {
    core.hub.counts(bufferingPolicy: bufferingPolicy)
  }

  /// Waits until there is a subscriber, which can be a stream or a handler.
  ///
  /// - Throws: A `CancellationError` if the calling task is cancelled.
  public nonisolated func waitForSubscriber() async throws {
    try await core.hub.waitForSubscriber()
    withExtendedLifetime(self) {}
  }
}
