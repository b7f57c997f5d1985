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
  @usableFromInline let cache: KeyedCache<Key, Value>
  /// The refresh that requests through this reference insist on.
  @usableFromInline let ticket: RefreshTicket
  @usableFromInline let owner: CacheOwner<Key, Value>

  @usableFromInline
  init(owner: CacheOwner<Key, Value>, ticket: RefreshTicket) {
    cache = owner.cache
    self.owner = owner
    self.ticket = ticket
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
    let hash = cache.hasher.hash(key)
    if let value = cache.hit(key, hash: hash, ticket: ticket) { return value }
    return try await cache.settle(key, hash: hash, ticket: ticket).value
  }

  /// Returns the value of a key, where it comes from and how old it is.
  ///
  /// - Parameter key: The key.
  /// - Returns: Its value, and what is known of it.
  /// - Throws: As ``request(_:)->Value``.
  @inlinable
  public nonisolated func response(_ key: Key) async throws -> Response<Value> {
    try await cache.response(key, hash: cache.hasher.hash(key), ticket: ticket)
  }

  /// Returns the value of a key in memory, fresh or stale.
  ///
  /// It fetches nothing and does not count in the statistics.
  ///
  /// - Parameter key: The key.
  /// - Returns: Its value; `nil` if there is none.
  @inlinable
  public nonisolated func cachedValue(_ key: Key) -> Value? {
    cache.value(of: key, hash: cache.hasher.hash(key))
  }

  /// Returns the values of several keys, as if each of them were requested at the same time.
  ///
  /// What is fresh is taken from memory, running fetches are joined, and only what is missing is fetched:
  /// all of it by one fetch if the map has one for several keys. One key's failure does not fail
  /// others. When the calling task is cancelled, every key that would still have to be waited for fails
  /// with a `CancellationError` at once.
  ///
  /// ```swift
  /// let users = MultiplexerMap<Int, String>.bulk { ids in
  ///   Dictionary(uniqueKeysWithValues: ids.map { ($0, "user \($0)") })
  /// }
  ///
  /// for (id, user) in await users.request([1, 2, 3]) {
  ///   print(id, try user.get())
  /// }
  /// ```
  ///
  /// - Parameter keys: The keys; one that occurs twice is asked for once.
  /// - Returns: The value of each key, or the error that ``request(_:)-(Key)`` would throw. A key that a
  ///   fetch for several keys returned nothing for fails with ``MultiplexerError/missingKey(_:)``.
  @inlinable
  public nonisolated func request(
    _ keys: some Collection<Key> & Sendable
  ) async -> [Key: Result<Value, any Error>] {
    await cache.settle(keys, ticket: ticket)
  }

  /// One key of the map, to be requested, followed and changed, for instance by a ``Zipper`` or a view.
  ///
  /// It keeps the map alive.
  ///
  /// - Parameter key: The key.
  @inlinable
  public nonisolated subscript(key: Key) -> Entry {
    Entry(owner: owner, key: key, hash: cache.hasher.hash(key), ticket: ticket)
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
  @inlinable
  public nonisolated func store(_ value: Value, for key: Key) {
    cache.store(value, for: key, hash: cache.hasher.hash(key))
  }

  /// Says that the value of a key has changed at its origin.
  ///
  /// What follows is described at ``Multiplexer/refresh()``.
  ///
  /// - Parameter key: The key.
  /// - Returns: A reference to the same map. Its requests are answered with what was fetched or stored
  ///   after the key's own newest refresh, of those up to this call.
  @inlinable
  @discardableResult
  public nonisolated func refresh(_ key: Key) -> Self {
    Self(owner: owner, ticket: cache.refresh(key, hash: cache.hasher.hash(key)))
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
    Self(owner: owner, ticket: cache.refreshAll())
  }

  /// Forgets the value of a key.
  ///
  /// It is forgotten, and `.unknown` is published, before this call suspends. Those who wait for a fetch
  /// get its result, which is stored nowhere. A request made afterwards fetches anew, and no stored copy
  /// is used until it has been removed. When this call returns it is gone for good. It runs to its
  /// end when the calling task is cancelled.
  ///
  /// - Parameter key: The key.
  /// - Throws: A ``CacherError`` if the stored copy may still be there. This map does not use it any more,
  ///   and tries again to remove it at the next ``flush()`` or `clear`.
  @inlinable
  public nonisolated func clear(_ key: Key) async throws {
    try await cache.clear(key, hash: cache.hasher.hash(key))
  }

  /// Forgets the values of all keys, as ``clear(_:)-(Key)`` does, and removes everything that its cacher has.
  ///
  /// - Throws: The cacher's error if stored copies may still be there. This map does not use them any
  ///   more, and tries again to remove them at the next ``flush()`` or `clear`.
  public nonisolated func clear() async throws {
    try await cache.clear()
  }

  /// Writes the values to the cacher that have changed since they were written.
  ///
  /// It runs to its end when the calling task is cancelled.
  ///
  /// - Throws: A ``CacherError`` that names the keys that failed. They are tried again at the next call,
  ///   except for values that had to make room in memory and could not be written, which are lost.
  public nonisolated func flush() async throws {
    try await cache.flush()
  }

  /// Forgets the values in memory, for instance when memory is short.
  ///
  /// `.unknown` is published. Fetches that are under way go on, and their values will be kept. Values that
  /// the cacher does not have yet are written to it.
  public nonisolated func clearMemory() {
    cache.clearMemory()
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
  @inlinable
  public nonisolated func subscription(
    to key: Key,
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> Subscription<LoadState<Value>> {
    cache.withHub(of: key, hash: cache.hasher.hash(key)) { hub, replay in
      hub.subscription(bufferingPolicy: bufferingPolicy, replaying: replay)
    }
  }

  /// Returns the number of subscribers of a key at this moment.
  ///
  /// - Parameter key: The key.
  /// - Returns: The number.
  public nonisolated func subscriberCount(of key: Key) -> Int {
    cache.subscriberCount(of: key, hash: cache.hasher.hash(key))
  }

  // MARK: - Housekeeping

  /// Registers somebody who keeps a log of what happens from now on, to all keys.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The stream, which lives until it is dropped or its task is cancelled, or the map is
  ///   released.
  public nonisolated func events(
    bufferingPolicy: BufferingPolicy<CacheEvent> = .unbounded
  ) -> AsyncStream<CacheEvent> {
    cache.subscribe(bufferingPolicy: bufferingPolicy)
  }

  /// What has happened so far, over all keys.
  @inlinable public nonisolated var statistics: CacheStatistics {
    cache.currentStatistics
  }

  /// Adds the map to a repository, which does not keep it alive.
  ///
  /// - Parameter repository: What clears its members together.
  /// - Returns: The map itself.
  @discardableResult
  public nonisolated func register(in repository: MuxRepository = .shared) -> Self {
    repository.register(cache)
    return self
  }
}
