/// A publisher of the loading state of one piece of data.
///
/// A new subscriber receives the current state first, even if it is `.unknown`, and then every change. By default, a
/// slow stream skips to the newest state, and a handler is called for every state.
///
/// ```swift
/// let profile = DataPublisher<String>(staleAfter: .seconds(300))
/// let states = profile.subscribe()
/// try await profile.loadIfNeeded { "Ada" }
/// for await state in states {
///   print(state.value ?? "unknown")  // Prints "Ada"
///   break
/// }
/// ```
///
/// ## The previous value
///
/// After ``startLoading()`` and ``fail(_:)``, and during a reload, the newest value remains available as the previous
/// value. Only ``reset()`` drops it, and then publishes `.unknown`.
///
/// ## Loading
///
/// ``load(_:)`` publishes `.loading`, then `.loaded` or `.failed`. A second call joins the load in flight. A result
/// that arrives after a reset, or after a newer update or failure, is returned to the callers but not published. A load has no time
/// limit of its own.
///
/// ## Staleness
///
/// ``isStale`` is `true` for a loaded value that has reached the age `staleAfter`. With `publishesStaleness`,
/// subscribers are notified: when the value becomes stale, `.loaded` is published again, and ``isStale`` is `true` by
/// then.
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
/// A cancelled caller of ``load(_:)`` throws a `CancellationError` immediately. When the last caller is cancelled, the
/// operation is cancelled, and the state from before the load is published.
///
/// ## Release
///
/// Releasing the last reference to a publisher ends its streams. A caller that waits in ``load(_:)`` holds a reference.
///
/// ## Topics
///
/// ### Creating a publisher
/// - ``init(staleAfter:publishesStaleness:clock:)``
///
/// ### Loading
/// - ``load(_:)``
/// - ``loadIfNeeded(_:)``
///
/// ### Reading
/// - ``state``
/// - ``current``
/// - ``isStale``
///
/// ### Publishing
/// - ``startLoading()``
/// - ``update(_:)``
/// - ``fail(_:)``
/// - ``reset()``
/// - ``follow(_:)``
///
/// ### Subscribing
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
///
/// ### Counting subscribers
/// - ``subscriberCount``
/// - ``subscriberCounts(bufferingPolicy:)``
/// - ``waitForSubscriber()``
public final actor DataPublisher<Value: Sendable>: StatefulBroadcaster {
  /// The type of the elements that subscribers receive.
  public typealias Element = LoadState<Value>

  @usableFromInline let core: LoadingCore<LoadingState<Value>>

  /// Creates a publisher in the state `.unknown`.
  ///
  /// - Parameters:
  ///   - staleAfter: The age from which a loaded value is stale; `nil` for never.
  ///   - publishesStaleness: Whether subscribers are notified when a loaded value becomes stale.
  ///   - clock: The clock that measures the age.
  public init(
    staleAfter: Duration? = nil,
    publishesStaleness: Bool = false,
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    core = LoadingCore(
      LoadingState(),
      staleAfter: staleAfter,
      publishesStaleness: publishesStaleness,
      clock: clock
    )
  }

  deinit {
    core.close()
  }

  /// The current state.
  @inlinable public nonisolated var state: LoadState<Value> {
    core.current
  }

  /// The current state.
  @inlinable public nonisolated var current: LoadState<Value> { state }

  /// Whether there is a loaded value that has reached the age `staleAfter`.
  ///
  /// It is `false` in every state except `.loaded`.
  public nonisolated var isStale: Bool {
    core.isStale
  }

  /// The current number of subscribers, including streams and handlers.
  public nonisolated var subscriberCount: Int {
    core.hub.subscriberCount
  }

  /// Registers a subscriber, which receives the current state and then every change.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> AsyncStream<LoadState<Value>> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber, which receives the current state and then every change.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends when it is dropped or the task that iterates it is cancelled.
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> Subscription<LoadState<Value>> {
    registered(bufferingPolicy: bufferingPolicy)
  }

  /// Publishes `.loading`, with the newest value as the previous one.
  public nonisolated func startLoading() {
    core.change { state, publication, _ in
      state.startLoading()
      publication = .state
    }
  }

  /// Publishes a value.
  ///
  /// - Parameter value: The value.
  @inlinable
  public nonisolated func update(_ value: Value) {
    core.change { state, publication, now in
      state.update(value, at: now)
      publication = .state
    }
  }

  /// Publishes `.failed`, with the newest value as the previous one.
  ///
  /// - Parameter error: The error.
  public nonisolated func fail(_ error: any Error) {
    core.change { state, publication, _ in
      state.fail(error)
      publication = .state
    }
  }

  /// Drops the value and publishes `.unknown`.
  ///
  /// The value is no longer accessible through ``state`` when subscribers receive `.unknown`, and the result of a load
  /// in flight is not published. After this method has returned, no subscriber receives an earlier state: unread states
  /// are skipped under every buffering policy, and do not count in ``Subscription/droppedCount``.
  public nonisolated func reset() {
    core.change { state, publication, _ in
      state.reset()
      publication = .reset
    }
  }

  /// Loads a value and publishes it, or joins the load in flight.
  ///
  /// - Parameter operation: A closure that loads the value. It runs in its own task, outside any actor and without the
  ///   caller's task-local values. It is cancelled when the last caller of the load is cancelled.
  /// - Returns: The value.
  /// - Throws: The error of the operation; a `CancellationError` if the calling task is cancelled, without any effect
  ///   if the task was cancelled before the call; ``LoadError/recursiveLoad`` if called by the operation of the load
  ///   that it would join, or by one for which that load waits.
  @inlinable
  @discardableResult
  public nonisolated func load(
    _ operation: @escaping @concurrent @Sendable () async throws -> Value
  ) async throws -> Value {
    try await core.value(.new, operation)
  }

  /// Loads a value if the state is unknown, failed or stale.
  ///
  /// - Parameter operation: A closure that loads the value, as in ``load(_:)``.
  /// - Returns: The value that was already loaded, or the new one.
  /// - Throws: The same errors as ``load(_:)``.
  @inlinable
  @discardableResult
  public nonisolated func loadIfNeeded(
    _ operation: @escaping @concurrent @Sendable () async throws -> Value
  ) async throws -> Value {
    try await core.value(.fresh, operation)
  }
}

extension LoadingCore {
  /// Loads a value, or returns the known one.
  @inlinable
  func value<Output: Sendable>(
    _ request: LoadingState<Output>.Request,
    _ operation: @escaping @concurrent @Sendable () async throws -> Output
  ) async throws -> Output where Model == LoadingState<Output> {
    let loaded = try await load(request) { flight, _ in
      run(flight, operation) { [self] in finish(flight, with: $0) }
    }
    return switch loaded {
    case .known(let value): value
    case .outcome(let outcome): outcome.value(of: Output.self)
    }
  }

  /// Records the result of a load, and ends it.
  @inlinable
  func finish<Output: Sendable>(
    _ flight: Flight,
    with result: Result<Output, any Error>
  ) where Model == LoadingState<Output> {
    change { loading, publication, now in
      if loading.finish(flight, with: result, at: now) { publication = .state }
    }
    switch result {
    case .success(let output): flight.end(with: ValueOutcome(output))
    case .failure(let error): flight.end(with: Outcome(.failure, error: error))
    }
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
  /// Returns a stream of the current number of subscribers, followed by every change of it.
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

  /// Waits until there is at least one subscriber, which can be a stream or a handler.
  ///
  /// - Throws: A `CancellationError` if the calling task is cancelled.
  public nonisolated func waitForSubscriber() async throws {
    try await core.hub.waitForSubscriber(retaining: self)
  }
}
