/// A cache of values by key, with at most one fetch in flight per key.
///
/// Any number of tasks can request a key. All of them wait for the same fetch. Afterwards, the value is returned from
/// memory, without suspending, until its time to live has passed. Keys do not delay each other.
///
/// ```swift
/// let names = MultiplexerMap<Int, String> { id in "user \(id)" }
///
/// let name = try await names.request(7)
/// print(name)  // Prints "user 7"
/// ```
///
/// Failures, cancellation, refreshing, clearing, storing and release work for each key as described for
/// ``Multiplexer``.
///
/// ## Subscribing
///
/// A subscriber of a key receives the current loading state of its value first, and then every change. By default, a
/// slow stream skips to the newest state, and a handler is called for every state. Subscribing does not fetch, except for a live subscription: see
/// ``Entry/subscribe(refetching:bufferingPolicy:)``. The failed state of a key that has neither a value nor subscribers
/// is not kept indefinitely: it eventually becomes `.unknown`.
///
/// ## Memory
///
/// Without a ``CacheCapacity``, every value stays in memory until it is cleared, even after its time to live.
///
/// ## Keys
///
/// Keys can be of any `Hashable` and `Sendable` type; integers and strings are the fastest. The map calls `hash(into:)`
/// with no lock held, but compares keys with a lock held: the `==` of the type must be fast and must not use the map.
///
/// ## Topics
///
/// ### Creating a map
/// - ``init(id:policy:capacity:tagging:valueTagging:clock:onKeyFetch:)-(_,_,_,_,_,_,(Key)->Value)``
/// - ``init(id:policy:capacity:tagging:valueTagging:clock:onKeyFetch:)-(_,_,_,_,_,_,(Key,FetchContext<Value>)->FetchResult<Value>)``
///
/// ### Creating a map that fetches several keys at once
/// - ``bulk(id:policy:capacity:tagging:valueTagging:clock:window:maximumBatchSize:onFetch:)-(_,_,_,_,_,_,_,_,([Key])->[Key:Value])``
/// - ``bulk(id:policy:capacity:tagging:valueTagging:clock:window:maximumBatchSize:onFetch:)-(_,_,_,_,_,_,_,_,([Key])->[Key:Result<FetchResult<Value>,Error>])``
///
/// ### Creating a map that stores copies
/// - ``init(id:policy:capacity:cacher:tagging:valueTagging:clock:onKeyFetch:)-(_,_,_,_,_,_,_,(Key)->Value)``
/// - ``init(id:policy:capacity:cacher:tagging:valueTagging:clock:onKeyFetch:)-(_,_,_,_,_,_,_,(Key,FetchContext<Value>)->FetchResult<Value>)``
/// - ``init(id:policy:capacity:cacher:keyName:tagging:valueTagging:clock:onKeyFetch:)-(_,_,_,_,_,_,_,_,(Key)->Value)``
/// - ``init(id:policy:capacity:cacher:keyName:tagging:valueTagging:clock:onKeyFetch:)-(_,_,_,_,_,_,_,_,(Key,FetchContext<Value>)->FetchResult<Value>)``
/// - ``bulk(id:policy:capacity:cacher:tagging:valueTagging:clock:window:maximumBatchSize:onFetch:)-(_,_,_,_,_,_,_,_,_,([Key])->[Key:Value])``
/// - ``bulk(id:policy:capacity:cacher:tagging:valueTagging:clock:window:maximumBatchSize:onFetch:)-(_,_,_,_,_,_,_,_,_,([Key])->[Key:Result<FetchResult<Value>,Error>])``
/// - ``bulk(id:policy:capacity:cacher:keyName:tagging:valueTagging:clock:window:maximumBatchSize:onFetch:)-(_,_,_,_,_,_,_,_,_,_,([Key])->[Key:Value])``
/// - ``bulk(id:policy:capacity:cacher:keyName:tagging:valueTagging:clock:window:maximumBatchSize:onFetch:)-(_,_,_,_,_,_,_,_,_,_,([Key])->[Key:Result<FetchResult<Value>,Error>])``
///
/// ### Requesting
/// - ``request(_:)->Value``
/// - ``request(_:)->[Key:Result<Value,Error>]``
/// - ``response(_:)``
/// - ``prefetch(_:)``
/// - ``subscript(_:)``
/// - ``Entry``
///
/// ### Reading memory
/// - ``cachedValue(_:)``
/// - ``count``
/// - ``keys``
///
/// ### Changing
/// - ``store(_:for:)``
/// - ``store(_:)``
/// - ``update(_:_:)``
/// - ``update(_:optimistically:commit:)``
///
/// ### Refreshing
/// - ``refresh(_:)-(Key)``
/// - ``refresh(where:)``
/// - ``refresh(tags:)``
/// - ``refreshAll()``
///
/// ### Clearing
/// - ``clear(_:)-(Key)``
/// - ``clear(where:)``
/// - ``clear(tags:)``
/// - ``clear()``
/// - ``clearMemory()``
/// - ``clearMemory(_:)``
///
/// ### Subscribing
/// - ``subscribe(to:bufferingPolicy:)``
/// - ``subscription(to:bufferingPolicy:)``
/// - ``subscriberCount(of:)``
///
/// ### Storing and signing out
/// - ``flush()``
/// - ``register(in:)``
///
/// ### Monitoring
/// - ``statistics``
/// - ``events(bufferingPolicy:)``
/// - ``detailedEvents(bufferingPolicy:)``
/// - ``entries(limit:where:)``
/// - ``EntrySnapshot``
/// - ``flights(limit:)``
/// - ``FlightSnapshot``
public final actor MultiplexerMap<Key: Hashable & Sendable, Value: Sendable> {
  @usableFromInline let cache: KeyedCache<Key, Value>
  /// The refresh that requests through this reference must satisfy.
  @usableFromInline let ticket: RefreshTicket
  @usableFromInline let owner: CacheOwner<Key, Value>

  @usableFromInline
  init(owner: CacheOwner<Key, Value>, ticket: RefreshTicket) {
    cache = owner.cache
    self.owner = owner
    self.ticket = ticket
  }

  // MARK: - Requests

  /// Returns the value of a key: immediately if it is fresh, otherwise after a fetch that all callers share.
  ///
  /// - Parameter key: The key.
  /// - Returns: The value.
  /// - Throws: The error of the fetch; a `CancellationError` if the calling task is cancelled and no value is
  ///   available; ``MultiplexerError/recursiveRequest(chain:)`` if the calling task belongs to a fetch that would wait
  ///   for itself.
  @inlinable
  @inline(__always)
  public nonisolated func request(_ key: Key) async throws -> Value {
    let hash = cache.hasher.hash(key)
    if let value = cache.hit(key, hash: hash, ticket: ticket) { return value }
    return try await cache.request(key, hash: hash, ticket: ticket).value
  }

  /// Returns the value of a key with its source and its age.
  ///
  /// - Parameter key: The key.
  /// - Returns: The response.
  /// - Throws: The same errors as ``request(_:)->Value``.
  @inlinable
  public nonisolated func response(_ key: Key) async throws -> Response<Value> {
    try await cache.response(key, hash: cache.hasher.hash(key), ticket: ticket)
  }

  /// Returns the value of a key in memory, fresh or stale.
  ///
  /// The call starts no fetch, and is not counted in the statistics.
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, if any.
  @inlinable
  public nonisolated func cachedValue(_ key: Key) -> Value? {
    cache.value(of: key, hash: cache.hasher.hash(key))
  }

  /// Returns the values of several keys, as if all of them were requested at the same time.
  ///
  /// Fresh values are returned from memory, fetches in flight are joined, and only the remaining keys are fetched: with
  /// one call if the map was created with `bulk`. Keys fail independently. If the calling task is cancelled, every key
  /// that has to wait fails immediately with a `CancellationError`.
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
  /// - Parameter keys: The keys. A repeated key is requested once.
  /// - Returns: The value of each key, or the error that ``request(_:)->Value`` would throw. A key for which a bulk
  ///   fetch returns nothing fails with ``MultiplexerError/missingKey(_:)``.
  @inlinable
  public nonisolated func request(
    _ keys: some Collection<Key> & Sendable
  ) async -> [Key: Result<Value, any Error>] {
    await cache.request(keys, ticket: ticket)
  }

  /// Returns an entry of the map, for example for a ``Zipper`` or a view.
  ///
  /// The entry keeps the map alive.
  ///
  /// - Parameter key: The key.
  @inlinable
  public nonisolated subscript(key: Key) -> Entry {
    Entry(owner: owner, key: key, hash: cache.hasher.hash(key), ticket: ticket)
  }

  // MARK: - Commands

  /// Stores the value of a key, which is as fresh as one that was just fetched.
  ///
  /// The value takes precedence over the result of a fetch in flight, and the callers of that fetch get it instead. It
  /// satisfies all earlier refreshes of the key, and drops a remembered failure.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  @inlinable
  public nonisolated func store(_ value: Value, for key: Key) {
    cache.store(value, for: key, hash: cache.hasher.hash(key))
  }

  /// Marks the value of a key as changed at its origin.
  ///
  /// For details, see ``Multiplexer/refresh()``.
  ///
  /// - Parameter key: The key.
  /// - Returns: A reference to the same map. Its requests of a key are answered only with values that were fetched or
  ///   stored after the latest refresh of that key at the time of this call, unless the fetch fails and the policy
  ///   permits the old value.
  @inlinable
  @discardableResult
  public nonisolated func refresh(_ key: Key) -> Self {
    Self(owner: owner, ticket: cache.refresh(key, hash: cache.hasher.hash(key)))
  }

  /// Marks the values of all keys as changed at their origin.
  ///
  /// A key with a fetch in flight is fetched once more after it; other keys are fetched when they are requested. The
  /// call takes time proportional to the number of keys.
  ///
  /// - Returns: A reference to the same map. Its requests are answered only with values that were fetched or stored
  ///   after this call, unless the fetch fails and the policy permits the old value.
  @discardableResult
  public nonisolated func refreshAll() -> Self {
    Self(owner: owner, ticket: cache.refreshAll())
  }

  /// Removes the value of a key from memory and storage.
  ///
  /// The value is removed from memory, and `.unknown` is published, before this call suspends. Callers of a fetch in
  /// flight get its result, which is not stored. A later request fetches again, and the stored copy is not used. When
  /// this call returns, the removal is durable. The call completes even if the calling task is cancelled.
  ///
  /// - Parameter key: The key.
  /// - Throws: A ``CacherError`` if the stored copy may still exist. This map does not use it, and tries to remove it
  ///   again at the next ``flush()`` or `clear`.
  @inlinable
  public nonisolated func clear(_ key: Key) async throws {
    try await cache.clear(key, hash: cache.hasher.hash(key))
  }

  /// Removes the values of all keys, like ``clear(_:)-(Key)``, and all stored entries of the map.
  ///
  /// A map with an id removes the entries of its namespace. A map without one removes all entries of the cacher.
  ///
  /// - Throws: The error of the cacher if stored copies may still exist. This map does not use them, and tries to
  ///   remove them again at the next ``flush()`` or `clear`.
  public nonisolated func clear() async throws {
    try await cache.clear()
  }

  /// Writes all unwritten changes to the cacher.
  ///
  /// The call completes even if the calling task is cancelled. With a ``SharedCacher``, a value that another process can have
  /// overtaken is not written, and all processes fetch its key again.
  ///
  /// - Throws: A ``CacherError`` that names the failed keys. They are retried at the next call, except for values that
  ///   were evicted and could not be written, which are lost.
  public nonisolated func flush() async throws {
    try await cache.flush()
  }

  /// Removes all values from memory, for example when memory is low.
  ///
  /// `.unknown` is published. Fetches in flight continue, and their values are stored. Unwritten changes are written to
  /// the cacher.
  public nonisolated func clearMemory() {
    cache.clearMemory()
  }

  // MARK: - Streams

  /// Registers a subscriber of a key, which receives the current state of its value and then every change.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscribe(
    to key: Key,
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> AsyncStream<LoadState<Value>> {
    AsyncStream(subscription(to: key, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber of a key, which receives the current state of its value and then every change.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends when it is dropped or the task that iterates it is cancelled.
  @inlinable
  public nonisolated func subscription(
    to key: Key,
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> Subscription<LoadState<Value>> {
    cache.withHub(of: key, hash: cache.hasher.hash(key)) { hub, replay in
      hub.subscription(bufferingPolicy: bufferingPolicy, replaying: replay)
    }
  }

  /// Returns the current number of subscribers of a key.
  ///
  /// - Parameter key: The key.
  /// - Returns: The number.
  public nonisolated func subscriberCount(of key: Key) -> Int {
    cache.subscriberCount(of: key, hash: cache.hasher.hash(key))
  }

  // MARK: - Housekeeping

  /// Returns a stream of the events of all keys from now on, for example for a log.
  ///
  /// - Parameter bufferingPolicy: The policy for events that the reader has not read yet.
  /// - Returns: The stream. It ends when it is dropped, when the task that iterates it is cancelled, or when the map is
  ///   released.
  public nonisolated func events(
    bufferingPolicy: BufferingPolicy<CacheEvent> = .unbounded
  ) -> AsyncStream<CacheEvent> {
    cache.subscribe(bufferingPolicy: bufferingPolicy)
  }

  /// The statistics of all keys since the creation of the map.
  public nonisolated var statistics: CacheStatistics {
    cache.currentStatistics
  }

  /// The map as a member of a repository, for caches that consist of a map and more.
  package nonisolated var member: any RepositoryMember { cache }

  /// Adds the map to a repository, which does not keep it alive.
  ///
  /// - Parameter repository: The repository.
  /// - Returns: The map itself.
  @discardableResult
  public nonisolated func register(in repository: MuxRepository = .shared) -> Self {
    repository.register(cache)
    return self
  }
}
