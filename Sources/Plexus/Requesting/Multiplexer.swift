/// A cache of one asynchronously fetched value that never fetches it twice at once.
///
/// Any number of tasks may ask for the value; while a fetch is under way they all wait for that one.
/// Afterwards the value is handed out from memory, without suspending, until it is older than its
/// time to live.
///
/// ```swift
/// let profile = Multiplexer {
///   try await Task.detached { "Ada" }.value
/// }
///
/// // A hundred views may ask at once; the fetch runs once.
/// let name = try await profile.request()
/// print(name)
/// ```
///
/// ## Fetching
///
/// The closure runs in a task of its own, off every actor. It has the highest priority of those who
/// wait, and none of their task-local values. A caller that comes while it runs joins it.
///
/// ## Failing
///
/// Everybody who waits gets the error, nothing is cached, and the next request fetches again. A value
/// that is there is never dropped because of an error: if the policy says so, callers get it in place
/// of the error; ``response()`` tells.
///
/// ## Cancellation
///
/// A caller that is cancelled while it waits leaves at once with a `CancellationError`; the fetch and
/// the other callers notice nothing. What happens to the fetch when the last caller has left, the
/// policy says. A task that is cancelled already still gets a value that is at hand, and an error
/// in place of a wait.
///
/// ## Refreshing, clearing, storing
///
/// ``refresh()`` says that the value has changed at its origin, ``clear()`` forgets it, and
/// ``store(_:)`` brings a new one. Whatever a fetch brings that began before is never stored after
/// `clear()` or `store(_:)`, and does not satisfy a `refresh()`.
///
/// ## Subscribing
///
/// A subscriber is told the state of the value: the current one at once, then every change. It does not
/// cause a fetch, unless it is a live subscription: ``subscribe(refetching:bufferingPolicy:)``.
///
/// ## Release
///
/// The last reference ends the streams. A fetch that is under way ends in its own time; a caller that
/// waits holds a reference.
public final actor Multiplexer<Value: Sendable>: StatefulBroadcaster, Requestable {
  /// What subscribers receive.
  public typealias Element = LoadState<Value>

  @usableFromInline let cache: KeyedCache<SingleKey, Value>
  /// The refresh that requests through this reference insist on.
  @usableFromInline let ticket: RefreshTicket
  @usableFromInline let owner: CacheOwner<SingleKey, Value>
  /// Returns the value if it is fresh.
  ///
  /// A zipper calls a method of the protocol, which is compiled for no type: this is compiled for the type of a
  /// client.
  @usableFromInline let hit: @Sendable () -> Value?

  @inlinable
  init(owner: CacheOwner<SingleKey, Value>, ticket: RefreshTicket) {
    let cache = owner.cache
    self.cache = cache
    self.owner = owner
    self.ticket = ticket
    hit = { cache.hit(SingleKey(), hash: 0, ticket: ticket) }
  }

  /// Creates a multiplexer of what a closure fetches.
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors, and the key of its stored copy; its type if there is
  ///     none. Give one with a cacher: two multiplexers of one type would share a copy.
  ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
  ///   - cacher: Where the value outlives the process, if it shall.
  ///   - clock: What measures the age of values, waits and timeouts.
  ///   - onFetch: What fetches the value. It is released with the multiplexer.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, and its timeouts are positive.
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

  /// Creates a multiplexer of what a closure fetches that knows of the value it renews.
  ///
  /// The closure may ask the origin whether the value has changed at all, and may say how long the
  /// new one is fresh.
  ///
  /// ```swift
  /// let rates = Multiplexer { (context: FetchContext<[String]>) in
  ///   guard context.validator == nil else { return .notModified() }
  ///   return .value(["EUR"], timeToLive: .seconds(60), validator: "v1")
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors, and the key of its stored copy; its type if there is
  ///     none. Give one with a cacher: two multiplexers of one type would share a copy.
  ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
  ///   - cacher: Where the value outlives the process, if it shall.
  ///   - clock: What measures the age of values, waits and timeouts.
  ///   - onFetch: What fetches the value. It is released with the multiplexer.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, and its timeouts are positive.
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
        Storage(
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

  /// Returns the value: at once if it is fresh, else after the one fetch that everybody waits for.
  ///
  /// - Returns: The value.
  /// - Throws: The error of the fetch that this call waited for; a `CancellationError` if the calling
  ///   task is cancelled and there is no value at hand;
  ///   ``MultiplexerError/recursiveRequest(chain:)`` if the calling task belongs to a fetch that would
  ///   come to wait for itself.
  @inlinable
  public nonisolated func request() async throws -> Value {
    if let value = cache.hit(SingleKey(), hash: 0, ticket: ticket) { return value }
    return try await cache.settle(SingleKey(), hash: 0, ticket: ticket).value
  }

  /// Returns the value in memory if it is fresh, and counts it as a hit.
  ///
  /// - Returns: The value; `nil` if ``request()`` would fetch it or wait for it.
  @inlinable
  public nonisolated func requestImmediately() -> Value? {
    hit()
  }

  /// Returns the value, where it comes from and how old it is.
  ///
  /// - Returns: The value, and what is known of it.
  /// - Throws: As ``request()``.
  @inlinable
  public nonisolated func response() async throws -> Response<Value> {
    try await cache.response(SingleKey(), hash: 0, ticket: ticket)
  }

  /// The value in memory, fresh or stale; it is `nil` if there is none.
  ///
  /// Reading it fetches nothing and does not count in the statistics.
  @inlinable public nonisolated var cachedValue: Value? {
    cache.value(of: SingleKey(), hash: 0)
  }

  // MARK: - Commands

  /// Says that the value has changed at its origin.
  ///
  /// The next request fetches. If a fetch is under way, which began too early, one more runs right
  /// after it, however many refreshes come before that one begins. While it runs other requests keep
  /// getting the old value at once, for as long as it serves. A fetch that fails keeps the value, and the
  /// next request tries again. A remembered failure is forgotten.
  ///
  /// ```swift
  /// let profile = Multiplexer { "Ada" }
  /// let newest = try await profile.refresh().request()
  /// print(newest)
  /// ```
  ///
  /// - Returns: A reference to the same multiplexer whose requests are answered with what was fetched or
  ///   stored after this call only.
  @inlinable
  @discardableResult
  public nonisolated func refresh() -> Self {
    Self(owner: owner, ticket: cache.refresh(SingleKey(), hash: 0))
  }

  /// Forgets the value.
  ///
  /// It is forgotten, and `.unknown` is published, before this call suspends. Those who wait for a fetch
  /// get its result, which is stored nowhere. A request made afterwards fetches anew, and no stored copy
  /// is used until it has been removed. When this call returns it is gone for good. It runs to its
  /// end when the calling task is cancelled.
  ///
  /// - Throws: The cacher's error if the stored copy may still be there. This multiplexer does not use it
  ///   any more, and tries again to remove it at the next ``flush()`` or `clear()`.
  public nonisolated func clear() async throws {
    try await cache.clear()
  }

  /// Writes the value to the cacher, if it has changed since it was written.
  ///
  /// It runs to its end when the calling task is cancelled.
  ///
  /// - Throws: A ``CacherError`` that names the keys that failed. They are tried again at the next call.
  public nonisolated func flush() async throws {
    try await cache.flush()
  }

  /// Forgets the value in memory, for instance when memory is short.
  ///
  /// `.unknown` is published. A fetch that is under way goes on, and its value will be kept. A value that
  /// the cacher does not have yet is written to it.
  public nonisolated func clearMemory() {
    cache.clearMemory()
  }

  /// Brings a value, as fresh as one that was just fetched.
  ///
  /// It wins over every fetch under way, whose callers get it, too; it satisfies every refresh before
  /// and ends a remembered failure.
  ///
  /// - Parameter value: The value.
  @inlinable
  public nonisolated func store(_ value: Value) {
    cache.store(value, for: SingleKey(), hash: 0)
  }

  // MARK: - Streams

  /// Registers a subscriber and returns the current state of the value and those that follow.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> AsyncStream<LoadState<Value>> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber and returns the current state of the value and those that follow.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
  @inlinable
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> Subscription<LoadState<Value>> {
    cache.withHub(of: SingleKey(), hash: 0) { hub, replay in
      hub.subscription(bufferingPolicy: bufferingPolicy, replaying: replay)
    }
  }

  /// The state of the value at this moment.
  ///
  /// Reading it fetches nothing and does not count in the statistics.
  public nonisolated var current: LoadState<Value> {
    cache.loadState(of: SingleKey(), hash: 0)
  }

  /// The number of subscribers at this moment, streams and handlers alike.
  public nonisolated var subscriberCount: Int {
    cache.subscriberCount(of: SingleKey(), hash: 0)
  }

  // MARK: - Housekeeping

  /// Registers somebody who keeps a log of what happens from now on.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The stream, which lives until it is dropped or its task is cancelled, or the multiplexer
  ///   is released.
  public nonisolated func events(
    bufferingPolicy: BufferingPolicy<CacheEvent> = .unbounded
  ) -> AsyncStream<CacheEvent> {
    cache.subscribe(bufferingPolicy: bufferingPolicy)
  }

  /// What has happened so far.
  @inlinable public nonisolated var statistics: CacheStatistics {
    cache.currentStatistics
  }

  /// Adds the multiplexer to a repository, which does not keep it alive.
  ///
  /// - Parameter repository: What clears its members together.
  /// - Returns: The multiplexer itself.
  @discardableResult
  public nonisolated func register(in repository: MuxRepository = .shared) -> Self {
    repository.register(cache)
    return self
  }
}

extension Multiplexer: HubBacked {
  nonisolated func withHub<Result>(
    _ body: (_ hub: BroadcastHub<LoadState<Value>>, _ replay: [LoadState<Value>]) -> Result
  ) -> Result {
    cache.withHub(of: SingleKey(), hash: 0, body)
  }
}

/// The key of a multiplexer that has only one.
@usableFromInline
struct SingleKey: Hashable, Sendable {
  @inlinable
  init() {}
}
