/// A cache of one value, with at most one fetch in flight.
///
/// Any number of tasks can request the value. All of them wait for the same fetch. Afterwards, the value is returned
/// from memory, without suspending, until its time to live has passed.
///
/// ```swift
/// let profile = Multiplexer {
///   try await Task.detached { "Ada" }.value
/// }
///
/// // A hundred views can request it at the same time: it is fetched once.
/// let name = try await profile.request()
/// print(name)  // Prints "Ada"
/// ```
///
/// ## Fetching
///
/// The closure runs in its own task, outside any actor, at the highest priority of its callers. It inherits task-local
/// values only if the policy sets ``CachePolicy/inheritsTaskLocals``. A request during the fetch joins it. A fetch can take
/// as long as it needs, unless the policy sets ``CachePolicy/fetchTimeout``.
///
/// ## Failures
///
/// All callers of a failed fetch get its error, and the next request fetches again, unless the policy sets
/// ``CachePolicy/failureTimeToLive``. A failure never removes a cached value. If the policy or the directives of the
/// value allow it, callers get that value instead of the error, and ``response()`` returns both.
///
/// ## Cancellation
///
/// A waiting caller that is cancelled throws a `CancellationError` immediately, without affecting the other callers.
/// When the last caller leaves, ``CachePolicy/whenUnobserved`` determines whether the fetch continues. In a task that
/// is already cancelled, a request returns the value if it is available, and otherwise throws instead of waiting.
///
/// ## Refreshing, clearing, storing
///
/// ``refresh()`` marks the value as changed at its origin, ``clear()`` removes it, and ``store(_:)`` replaces it. The
/// result of a fetch that started before `clear()` or `store(_:)` is not stored. A fetch that started before
/// `refresh()` does not satisfy it.
///
/// ## Subscribing
///
/// A subscriber receives the current loading state first, and then every change. By default, a slow stream skips to
/// the newest state, and a handler is called for every state. Subscribing does not fetch, except for a live
/// subscription: see ``subscribe(refetching:bufferingPolicy:)``.
///
/// ## Release
///
/// Releasing the last reference ends the streams, but not a fetch in flight. A waiting caller holds a reference.
///
/// ## Topics
///
/// ### Creating a multiplexer
/// - ``init(id:policy:cacher:clock:onFetch:)-(_,_,_,_,()->Value)``
/// - ``init(id:policy:cacher:clock:onFetch:)-(_,_,_,_,(FetchContext<Value>)->FetchResult<Value>)``
///
/// ### Requesting
/// - ``request()``
/// - ``response()``
/// - ``requestImmediately()``
/// - ``cachedValue``
/// - ``prefetch()``
///
/// ### Changing
/// - ``store(_:)``
/// - ``update(_:)``
/// - ``update(optimistically:commit:)``
/// - ``refresh()``
/// - ``clear()``
/// - ``clearMemory()``
///
/// ### Subscribing
/// - ``current``
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscribe(refetching:bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
/// - ``subscription(refetching:bufferingPolicy:)``
/// - ``subscriberCount``
///
/// ### Storing and signing out
/// - ``flush()``
/// - ``register(in:)``
///
/// ### Monitoring
/// - ``statistics``
/// - ``events(bufferingPolicy:)``
/// - ``detailedEvents(bufferingPolicy:)``
/// - ``entry``
/// - ``EntrySnapshot``
/// - ``flight``
/// - ``FlightSnapshot``
public final actor Multiplexer<Value: Sendable>: StatefulBroadcaster, Requestable {
  /// The type of the elements that subscribers receive.
  public typealias Element = LoadState<Value>

  @usableFromInline let cache: KeyedCache<SingleKey, Value>
  /// The refresh that requests through this reference must satisfy.
  @usableFromInline let ticket: RefreshTicket
  @usableFromInline let owner: CacheOwner<SingleKey, Value>
  /// Returns the value if it is fresh.
  ///
  /// A zipper calls a protocol method that is not specialized. This closure is specialized in the client.
  @usableFromInline let hit: @Sendable () -> Value?

  @inlinable
  init(owner: CacheOwner<SingleKey, Value>, ticket: RefreshTicket) {
    let cache = owner.cache
    self.cache = cache
    self.owner = owner
    self.ticket = ticket
    hit = { cache.hit(SingleKey(), hash: 0, ticket: ticket) }
  }

  /// Creates a multiplexer.
  ///
  /// - Parameters:
  ///   - id: The name in errors, and the key of the stored copy; by default, the name of the type. Pass an id together
  ///     with a cacher: without one, multiplexers of the same type share a copy.
  ///   - policy: The rules for caching, and for slow and failing fetches.
  ///   - cacher: Persistent storage for the value, if any.
  ///   - clock: The clock for ages, waits and timeouts.
  ///   - onFetch: A closure that fetches the value. It is released with the multiplexer.
  /// - Precondition: The policy's expiry jitter is between 0 and 1, and its timeouts are positive.
  @inlinable
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    cacher: (any Cacher<Value>)? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    onFetch: @escaping @concurrent @Sendable () async throws -> Value
  ) {
    self.init(
      id: id,
      policy: policy,
      cacher: cacher,
      clock: clock,
      fetch: KeyedCache<SingleKey, Value>.fetch { (_: SingleKey) in try await onFetch() }
    )
  }

  /// Creates a multiplexer whose fetch receives the previous value.
  ///
  /// The closure can ask the origin whether the value has changed, and can return a time to live for each value.
  ///
  /// ```swift
  /// let rates = Multiplexer { (context: FetchContext<[String]>) in
  ///   guard context.validator == nil else { return .notModified() }
  ///   return .value(["EUR"], timeToLive: .seconds(60), validator: "v1")
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - id: The name in errors, and the key of the stored copy; by default, the name of the type. Pass an id together
  ///     with a cacher: without one, multiplexers of the same type share a copy.
  ///   - policy: The rules for caching, and for slow and failing fetches.
  ///   - cacher: Persistent storage for the value, if any.
  ///   - clock: The clock for ages, waits and timeouts.
  ///   - onFetch: A closure that fetches the value. It is released with the multiplexer.
  /// - Precondition: The policy's expiry jitter is between 0 and 1, and its timeouts are positive.
  @inlinable
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    cacher: (any Cacher<Value>)? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    onFetch:
      @escaping @concurrent @Sendable (FetchContext<Value>) async throws -> FetchResult<Value>
  ) {
    self.init(
      id: id,
      policy: policy,
      cacher: cacher,
      clock: clock,
      fetch: KeyedCache<SingleKey, Value>.fetch {
        (_: SingleKey, context: FetchContext<Value>) in try await onFetch(context)
      }
    )
  }

  /// The common part of the public initializers.
  @inlinable
  init(
    id: String?,
    policy: CachePolicy,
    cacher: (any Cacher<Value>)?,
    clock: any Clock<Duration>,
    fetch: @escaping CacheEngine.Operations.Fetch
  ) {
    let cache = KeyedCache<SingleKey, Value>(
      id: id,
      type: Multiplexer<Value>.self,
      namesKeys: false,
      policy: policy,
      storage: cacher.map {
        StoredLayer(
          cacher: $0,
          onlyName: id ?? "\(Multiplexer<Value>.self)",
          policy: policy,
          clock: clock
        )
      },
      clock: clock,
      fetch: fetch
    )
    self.init(owner: CacheOwner(cache), ticket: .none)
  }

  // MARK: - Requests

  /// Returns the value: immediately if it is fresh, otherwise after a fetch that all callers share.
  ///
  /// - Returns: The value.
  /// - Throws: The error of the fetch; a `CancellationError` if the calling task is cancelled and no value is
  ///   available; ``MultiplexerError/recursiveRequest(chain:)`` if the calling task belongs to a fetch that would wait
  ///   for itself.
  @inlinable
  @inline(__always)
  public nonisolated func request() async throws -> Value {
    if let value = cache.hit(SingleKey(), hash: 0, ticket: ticket) { return value }
    return try await cache.request(SingleKey(), hash: 0, ticket: ticket).value
  }

  /// Returns the value in memory if it is fresh, and counts it as a hit.
  ///
  /// - Returns: The value; `nil` if it is missing or stale, or due for a renewal by ``CachePolicy/refreshAhead``.
  @inlinable
  public nonisolated func requestImmediately() -> Value? {
    hit()
  }

  /// Returns the value with its source and its age.
  ///
  /// - Returns: The response.
  /// - Throws: The same errors as ``request()``.
  @inlinable
  public nonisolated func response() async throws -> Response<Value> {
    try await cache.response(SingleKey(), hash: 0, ticket: ticket)
  }

  /// The value in memory, fresh or stale, if any.
  ///
  /// Reading it starts no fetch, and is not counted in the statistics.
  @inlinable public nonisolated var cachedValue: Value? {
    cache.value(of: SingleKey(), hash: 0)
  }

  /// Whether requests are answered with the value in memory, which is not counted as a hit.
  package nonisolated var hasFreshValue: Bool {
    cache.hasFreshValue(of: SingleKey(), hash: 0)
  }

  // MARK: - Commands

  /// Marks the value as changed at its origin.
  ///
  /// The next request fetches. Until that fetch ends, other requests return the old value immediately, as long as its
  /// age permits. If a fetch is in flight, one more fetch follows it, regardless of the number of refreshes. If the
  /// fetch fails, the value remains, and the next request fetches again. A refresh also drops a remembered failure.
  ///
  /// ```swift
  /// let profile = Multiplexer { "Ada" }
  /// let newest = try await profile.refresh().request()
  /// print(newest)  // Prints "Ada"
  /// ```
  ///
  /// - Returns: A reference to the same multiplexer. Its requests are answered only with values that were fetched or
  ///   stored after this call, unless the fetch fails and the policy permits the old value.
  @inlinable
  @discardableResult
  public nonisolated func refresh() -> Self {
    Self(owner: owner, ticket: cache.refresh(SingleKey(), hash: 0))
  }

  /// Removes the value from memory and storage.
  ///
  /// The value is removed from memory, and `.unknown` is published, before this call suspends. Callers of a fetch in
  /// flight get its result, which is not stored. A later request fetches again, and the stored copy is not used. When
  /// this call returns, the removal is durable. The call completes even if the calling task is cancelled.
  ///
  /// - Throws: The error of the cacher if the stored copy may still exist. This multiplexer does not use it, and tries
  ///   to remove it again at the next ``flush()`` or `clear()`.
  public nonisolated func clear() async throws {
    try await cache.clear()
  }

  /// Writes the value to the cacher if it has unwritten changes.
  ///
  /// The call completes even if the calling task is cancelled. With a ``SharedCacher``, a value that another process can have
  /// overtaken is not written, and all processes fetch again.
  ///
  /// - Throws: A ``CacherError`` that names the failed keys, which are retried at the next call.
  public nonisolated func flush() async throws {
    try await cache.flush()
  }

  /// Removes the value from memory, for example when memory is low.
  ///
  /// `.unknown` is published. A fetch in flight continues, and its value is stored. Unwritten changes are written to
  /// the cacher.
  public nonisolated func clearMemory() {
    cache.clearMemory()
  }

  /// Stores a value, which is as fresh as one that was just fetched.
  ///
  /// The value takes precedence over the result of a fetch in flight, and the callers of that fetch get it instead. It
  /// satisfies all earlier refreshes, and drops a remembered failure.
  ///
  /// - Parameter value: The value.
  @inlinable
  public nonisolated func store(_ value: Value) {
    cache.store(value, for: SingleKey(), hash: 0)
  }

  // MARK: - Streams

  /// Registers a subscriber, which receives the current state of the value and then every change.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> AsyncStream<LoadState<Value>> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber, which receives the current state of the value and then every change.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends when it is dropped or the task that iterates it is cancelled.
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> Subscription<LoadState<Value>> {
    cache.withHub(of: SingleKey(), hash: 0) { hub, replay in
      hub.subscription(bufferingPolicy: bufferingPolicy, replaying: replay)
    }
  }

  /// The current loading state of the value.
  ///
  /// Reading it starts no fetch, and is not counted in the statistics.
  public nonisolated var current: LoadState<Value> {
    cache.loadState(of: SingleKey(), hash: 0)
  }

  /// The current number of subscribers, including streams and handlers.
  public nonisolated var subscriberCount: Int {
    cache.subscriberCount(of: SingleKey(), hash: 0)
  }

  // MARK: - Housekeeping

  /// Returns a stream of the multiplexer's events from now on, for example for a log.
  ///
  /// - Parameter bufferingPolicy: The policy for events that the reader has not read yet.
  /// - Returns: The stream. It ends when it is dropped, when the task that iterates it is cancelled, or when the
  ///   multiplexer is released.
  public nonisolated func events(
    bufferingPolicy: BufferingPolicy<CacheEvent> = .unbounded
  ) -> AsyncStream<CacheEvent> {
    cache.subscribe(bufferingPolicy: bufferingPolicy)
  }

  /// The statistics since the creation of the multiplexer.
  public nonisolated var statistics: CacheStatistics {
    cache.currentStatistics
  }

  /// Adds the multiplexer to a repository, which does not keep it alive.
  ///
  /// - Parameter repository: The repository.
  /// - Returns: The multiplexer itself.
  @discardableResult
  public nonisolated func register(in repository: MuxRepository = .shared) -> Self {
    repository.register(cache)
    return self
  }
}

extension Multiplexer: HubBacked {
  nonisolated var presentHub: BroadcastHub<LoadState<Value>>? {
    cache.presentHub(of: SingleKey(), hash: 0)
  }

  nonisolated func withHub<Result>(
    _ body: (_ hub: BroadcastHub<LoadState<Value>>, _ replay: [LoadState<Value>]) -> Result
  ) -> Result {
    cache.withHub(of: SingleKey(), hash: 0, body)
  }
}

extension Multiplexer: JointPart {
  nonisolated func place(in draft: inout JointPlan.Draft) -> Int {
    // References that a refresh returns have the same value.
    draft.place(JointSource(source: self), id: ObjectIdentifier(cache)).step
  }
}

/// The key of a multiplexer, which has only one.
@usableFromInline
struct SingleKey: Hashable, Sendable {
  @inlinable
  init() {}
}
