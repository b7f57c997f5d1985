/// A cache of asynchronously fetched values by key that never fetches a key twice at once.
///
/// Each key behaves as a ``Multiplexer`` does: any number of tasks may ask for it, they share one
/// fetch, and the value is handed out from memory until it is older than its time to live. Keys do
/// not hold each other up.
///
/// ```swift
/// let names = MultiplexerMap<Int, String> { id in "user \(id)" }
///
/// let name = try await names.request(7)
/// print(name)
/// ```
///
/// Failing, cancellation, refreshing, clearing, storing and release are described at ``Multiplexer``;
/// they hold here for each key.
///
/// ## Subscribing
///
/// A subscriber of a key is told the state of its value: the current one at once, then every change. It
/// does not cause a fetch. A key without value and subscribers, whose last fetch failed, is forgotten
/// at some time: it is `.unknown` then.
///
/// ## Keys
///
/// Any hashable type will do; integers and strings are the fastest. Their `==` must not use the map.
public final actor MultiplexerMap<Key: Hashable & Sendable, Value: Sendable> {
  @usableFromInline let core: RequestCore<Key, Value>
  /// The refresh that requests through this reference insist on.
  @usableFromInline let ticket: RefreshTicket
  private let owner: CoreOwner<Key, Value>

  private init(owner: CoreOwner<Key, Value>, ticket: RefreshTicket) {
    core = owner.core
    self.owner = owner
    self.ticket = ticket
  }

  /// Creates a map of what a closure fetches.
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors; its type if there is none.
  ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
  ///   - clock: What measures the age of values, waits and timeouts.
  ///   - onKeyFetch: What fetches the value of a key. It is released with the map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, and its fetch timeout is positive.
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    clock: any Clock<Duration> = ContinuousClock(),
    onKeyFetch: @escaping @concurrent @Sendable (Key) async throws -> Value
  ) {
    self.init(id: id, policy: policy, clock: clock) { (key: Key, _: FetchContext<Value>) in
      .value(try await onKeyFetch(key))
    }
  }

  /// Creates a map of what a closure fetches that knows of the value it renews.
  ///
  /// The closure may ask the origin whether the value has changed at all, and may say how long the
  /// new one is fresh.
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors; its type if there is none.
  ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
  ///   - clock: What measures the age of values, waits and timeouts.
  ///   - onKeyFetch: What fetches the value of a key. It is released with the map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, and its fetch timeout is positive.
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    clock: any Clock<Duration> = ContinuousClock(),
    onKeyFetch:
      @escaping @concurrent @Sendable (Key, FetchContext<Value>) async throws -> FetchResult<Value>
  ) {
    let core = RequestCore<Key, Value>(
      name: id ?? "\(MultiplexerMap<Key, Value>.self)",
      namesKeys: true,
      stripeCount: 16,
      policy: policy,
      clock: clock,
      fetch: onKeyFetch
    )
    self.init(owner: CoreOwner(core), ticket: .none)
  }

  // MARK: - Requests

  /// Returns the value of a key: at once if it is fresh, else after the one fetch that everybody waits
  /// for who asks for that key.
  ///
  /// - Parameter key: The key.
  /// - Returns: Its value.
  /// - Throws: The error of the fetch that this call waited for; a `CancellationError` if the calling
  ///   task is cancelled and there is no value at hand;
  ///   ``MultiplexerError/recursiveRequest(chain:)`` if the calling task belongs to a fetch that would
  ///   come to wait for itself.
  @inlinable
  public nonisolated func request(_ key: Key) async throws -> Value {
    let hash = core.hasher.hash(key)
    if let value = core.hit(key, hash: hash, ticket: ticket) { return value }
    return try await core.settle(key, hash: hash, ticket: ticket).value
  }

  /// Returns the value of a key, where it comes from and how old it is.
  ///
  /// - Parameter key: The key.
  /// - Returns: Its value, and what is known of it.
  /// - Throws: As ``request(_:)``.
  public nonisolated func response(_ key: Key) async throws -> Response<Value> {
    try await core.response(key, hash: core.hasher.hash(key), ticket: ticket)
  }

  /// Returns the value of a key in memory, fresh or stale.
  ///
  /// It fetches nothing and does not count in the statistics.
  ///
  /// - Parameter key: The key.
  /// - Returns: Its value; `nil` if there is none.
  @inlinable
  public nonisolated func cachedValue(_ key: Key) -> Value? {
    core.value(of: key, hash: core.hasher.hash(key))
  }

  /// A request of one key, for instance for a ``Zipper``.
  ///
  /// It keeps the map alive.
  ///
  /// - Parameter key: The key.
  public nonisolated subscript(key: Key) -> Request<Value> {
    Request { try await self.request(key) }
  }

  // MARK: - Commands

  /// Brings the value of a key, as fresh as one that was just fetched.
  ///
  /// It wins over every fetch of the key under way, whose callers get it, too; it satisfies every
  /// refresh before and ends a remembered failure.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: Its key.
  public nonisolated func store(_ value: Value, for key: Key) {
    core.store(value, for: key, hash: core.hasher.hash(key))
  }

  /// Says that the value of a key has changed at its origin.
  ///
  /// What follows is described at ``Multiplexer/refresh()``.
  ///
  /// - Parameter key: The key.
  /// - Returns: A reference to the same map. Its requests are answered with what was fetched or stored
  ///   after the key's own newest refresh, of those up to this call.
  @discardableResult
  public nonisolated func refresh(_ key: Key) -> Self {
    Self(owner: owner, ticket: core.refresh(key, hash: core.hasher.hash(key)))
  }

  /// Says that the values of all keys have changed at their origin.
  ///
  /// Nothing is fetched until it is asked for, apart from keys whose fetch is under way. The call takes
  /// time in proportion to the number of keys.
  ///
  /// - Returns: A reference to the same map. Its requests are answered with what was fetched or stored
  ///   after this call only.
  @discardableResult
  public nonisolated func refreshAll() -> Self {
    Self(owner: owner, ticket: core.refreshAll())
  }

  /// Forgets the value of a key.
  ///
  /// It is forgotten, and `.unknown` is published, before this call suspends. Those who wait for a fetch
  /// get its result, which is stored nowhere. A request made afterwards fetches anew.
  ///
  /// - Parameter key: The key.
  /// - Throws: Nothing as long as there is no stored copy.
  public nonisolated func clear(_ key: Key) async throws {
    core.cutOff(key, hash: core.hasher.hash(key))
  }

  /// Forgets the values of all keys, as ``clear(_:)`` does.
  ///
  /// - Throws: Nothing as long as there is no stored copy.
  public nonisolated func clear() async throws {
    core.cutOff()
  }

  /// Forgets the values in memory, for instance when memory is short.
  ///
  /// `.unknown` is published. Fetches that are under way go on, and their values will be kept.
  public nonisolated func clearMemory() {
    core.clearMemory()
  }

  // MARK: - Streams

  /// Registers a subscriber and returns the current state of a key's value and those that follow.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscribe(
    to key: Key,
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> AsyncStream<LoadState<Value>> {
    AsyncStream(subscription(to: key, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber and returns the current state of a key's value and those that follow.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscription(
    to key: Key,
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> Subscription<LoadState<Value>> {
    core.withHub(of: key, hash: core.hasher.hash(key)) { hub, replay in
      hub.subscription(bufferingPolicy: bufferingPolicy, replaying: replay)
    }
  }

  /// Returns the number of subscribers of a key at this moment.
  ///
  /// - Parameter key: The key.
  /// - Returns: The number.
  public nonisolated func subscriberCount(of key: Key) -> Int {
    core.subscriberCount(of: key, hash: core.hasher.hash(key))
  }

  // MARK: - Housekeeping

  /// What has happened so far, over all keys.
  public nonisolated var statistics: CacheStatistics {
    core.statistics
  }

  /// Adds the map to a repository, which does not keep it alive.
  ///
  /// - Parameter repository: What clears its members together.
  /// - Returns: The map itself.
  @discardableResult
  public nonisolated func register(in repository: MuxRepository = .shared) -> Self {
    repository.register(core)
    return self
  }
}
