/// The state of one piece of data, told to any number of subscribers.
///
/// A new subscriber gets the current state at once, `.unknown` included, and then every change. By
/// default a slow subscriber skips ahead to the newest state.
///
/// ```swift
/// let profile = DataPublisher<String>(staleAfter: .seconds(300))
/// let states = profile.subscribe()
/// try await profile.loadIfNeeded { "Ada" }
/// for await state in states {
///   print(state.value ?? "nobody yet")
///   break
/// }
/// ```
///
/// ## What survives
///
/// The newest known value survives ``startLoading()``, ``fail(_:)`` and a reload as the previous
/// value. Only ``reset()`` drops it, before `.unknown` is published.
///
/// ## Loading
///
/// ``load(_:)`` publishes `.loading`, then `.loaded` or `.failed`. A second call while one runs
/// joins it. A result that arrives after a reset, or after a newer update or failure, is not
/// published; those who wait for it get it.
///
/// ## Staleness
///
/// ``isStale`` tells whether a loaded value has reached the age given at the beginning. A publisher that
/// was made with `publishesStaleness` also tells its subscribers: in the moment when the value goes stale,
/// `.loaded` is published once more, and ``isStale`` is `true` by then.
///
/// ```swift
/// let weather = DataPublisher<String>(staleAfter: .seconds(60), publishesStaleness: true, clock: clock)
/// let token = weather.observe { state in
///   print(state.value ?? "?", weather.isStale ? "(old)" : "")
/// }
/// ```
///
/// ## Cancellation
///
/// A caller of ``load(_:)`` that is cancelled leaves at once with a `CancellationError`. When the
/// last one has left, the operation is cancelled and the state goes back to what it was before.
///
/// ## Release
///
/// The last reference to a publisher ends its streams. A caller that waits in ``load(_:)`` holds one.
public final actor DataPublisher<Value: Sendable>: StatefulBroadcaster {
  /// The type of the elements that subscribers receive.
  public typealias Element = LoadState<Value>

  @usableFromInline let core: DataPublisherCore<Value>

  /// Creates a publisher of something unknown.
  ///
  /// - Parameters:
  ///   - staleAfter: The age from which on a loaded value counts as stale, by the clock. `nil` is never.
  ///   - publishesStaleness: Whether subscribers are told when a loaded value goes stale.
  ///   - clock: What measures the age.
  public init(
    staleAfter: Duration? = nil,
    publishesStaleness: Bool = false,
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    core = DataPublisherCore(
      staleAfter: staleAfter,
      publishesStaleness: publishesStaleness,
      clock: clock
    )
  }

  deinit {
    core.close()
  }

  /// What is known at this moment.
  @inlinable public nonisolated var state: LoadState<Value> {
    core.current
  }

  /// The state at this moment.
  @inlinable public nonisolated var current: LoadState<Value> { state }

  /// Whether there is a loaded value that has reached the age given at the beginning.
  ///
  /// It is `false` in every other state than `.loaded`.
  @inlinable public nonisolated var isStale: Bool {
    core.isStale
  }

  /// The current number of subscribers, including streams and handlers.
  public nonisolated var subscriberCount: Int {
    core.hub.subscriberCount
  }

  /// Registers a subscriber and returns the current state and those that follow.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling its task ends the subscription.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> AsyncStream<LoadState<Value>> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber and returns the current state and those that follow.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends when it is dropped or its task is cancelled.
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> Subscription<LoadState<Value>> {
    registered(bufferingPolicy: bufferingPolicy)
  }

  /// Says that loading has begun; the newest known value becomes the previous one.
  @inlinable
  public nonisolated func startLoading() {
    core.change { state, _ in state.startLoading() }
  }

  /// Publishes a value.
  ///
  /// - Parameter value: The newest value.
  @inlinable
  public nonisolated func update(_ value: Value) {
    core.change { state, now in state.update(value, at: now) }
  }

  /// Publishes that loading has failed; the newest known value becomes the previous one.
  ///
  /// - Parameter error: Why.
  @inlinable
  public nonisolated func fail(_ error: any Error) {
    core.change { state, _ in state.fail(error) }
  }

  /// Forgets everything and publishes `.unknown`.
  ///
  /// The value can no longer be reached through ``state`` when subscribers receive `.unknown`, and the
  /// result of a load in flight is not published. Once this has returned, no subscriber receives a state
  /// from before it: states that a subscriber has not read yet are skipped under every buffering policy,
  /// and do not count in ``Subscription/droppedCount``.
  @inlinable
  public nonisolated func reset() {
    core.reset()
  }

  /// Loads a value and publishes it, or joins the load that is under way.
  ///
  /// - Parameter operation: What loads the value. It runs at most once at a time, off the caller's
  ///   actor and apart from the caller's task: neither its cancellation nor its task-local values
  ///   reach it.
  /// - Returns: The value.
  /// - Throws: The error of the operation; a `CancellationError` if the calling task is cancelled, in
  ///   which case nothing has changed if it was so from the beginning;
  ///   ``LoadError/recursiveLoad`` if called by the operation of the load that it would join, or by one
  ///   for which that load waits in turn.
  @inlinable
  @discardableResult
  public nonisolated func load(
    _ operation: @escaping @concurrent @Sendable () async throws -> Value
  ) async throws -> Value {
    try await core.load(unlessLoaded: false, operation)
  }

  /// Loads a value only if it is unknown, has failed or is stale.
  ///
  /// - Parameter operation: What loads the value, as in ``load(_:)``.
  /// - Returns: The loaded value that there was, or the new one.
  /// - Throws: As ``load(_:)``.
  @inlinable
  @discardableResult
  public nonisolated func loadIfNeeded(
    _ operation: @escaping @concurrent @Sendable () async throws -> Value
  ) async throws -> Value {
    try await core.load(unlessLoaded: true, operation)
  }
}

extension DataPublisher: HubBacked {
  nonisolated func withHub<Result>(
    _ body: (_ hub: BroadcastHub<LoadState<Value>>, _ replay: [LoadState<Value>]) -> Result
  ) -> Result {
    core.withHub(body)
  }
}

extension DataPublisher {
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
