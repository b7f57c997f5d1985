extension MultiplexerMap {
  // MARK: - The keys in memory

  /// The number of keys that have a value in memory, fresh or stale, at this moment.
  public nonisolated var count: Int {
    cache.count
  }

  /// The keys that have a value in memory, fresh or stale, at this moment, in no particular order.
  ///
  /// Reading them takes time in proportion to the number of keys.
  public nonisolated var keys: [Key] {
    cache.keys
  }

  // MARK: - Commands for several keys

  /// Stores several values, each as ``store(_:for:)`` does.
  ///
  /// Each key changes atomically, but not all of them at the same moment.
  ///
  /// - Parameter values: The values by key.
  @inlinable
  public nonisolated func store(_ values: [Key: Value]) {
    for (key, value) in values { store(value, for: key) }
  }

  /// Starts fetching the keys that have no fresh value and are not being fetched, and returns at once.
  ///
  /// Use it for keys that are likely to be requested soon, such as the next rows of a list. A map with a fetch
  /// for several keys fetches all of them with one call. The fetches run to their end whether a caller waits for
  /// them or not. Their failures are published to subscribers, but not remembered: the next request fetches again.
  /// Prefetching does not count in the ``CacheStatistics/hits``, ``CacheStatistics/misses`` and
  /// ``CacheStatistics/joins`` of the map.
  ///
  /// ```swift
  /// let users = MultiplexerMap<Int, String> { id in "user \(id)" }
  /// users.prefetch([8, 9, 10])
  /// ```
  ///
  /// - Parameter keys: The keys.
  public nonisolated func prefetch(_ keys: some Collection<Key> & Sendable) {
    cache.prefetch(keys)
  }

  /// Invalidates the values of several keys, each as ``refresh(_:)-(Key)`` does.
  ///
  /// - Parameter keys: The keys.
  /// - Returns: A reference to the same map. Its requests are answered with what was fetched or stored
  ///   after the key's own newest refresh, of those up to this call.
  @discardableResult
  public nonisolated func refresh(_ keys: some Collection<Key>) -> Self {
    Self(owner: owner, ticket: cache.refresh(keys))
  }

  /// Invalidates the values of the keys that satisfy a condition.
  ///
  /// - Parameter isWanted: Decides about each key that is in memory or being fetched. It can use the map.
  /// - Returns: A reference to the same map. Its requests are answered with what was fetched or stored
  ///   after the key's own newest refresh, of those up to this call.
  @discardableResult
  public nonisolated func refresh(where isWanted: @Sendable (Key) -> Bool) -> Self {
    Self(owner: owner, ticket: cache.refresh(where: isWanted))
  }

  /// Forgets the values of several keys, each as ``clear(_:)-(Key)`` does.
  ///
  /// All of them are forgotten before this call suspends. Their stored copies are removed with one call of the
  /// cacher.
  ///
  /// - Parameter keys: The keys.
  /// - Throws: A ``CacherError`` that names the stored copies that may still be there. This map does not use them
  ///   any more, and tries again to remove them at the next ``flush()`` or `clear`.
  public nonisolated func clear(_ keys: some Collection<Key> & Sendable) async throws {
    try await cache.clear(keys)
  }

  /// Forgets the values of the keys that satisfy a condition.
  ///
  /// Stored copies of keys that are neither in memory nor being fetched stay. To remove those, too, clear the keys
  /// by name, or the whole map.
  ///
  /// - Parameter isWanted: Decides about each key that is in memory or being fetched. It can use the map.
  /// - Throws: A ``CacherError`` that names the stored copies that may still be there. This map does not use them
  ///   any more, and tries again to remove them at the next ``flush()`` or `clear`.
  public nonisolated func clear(where isWanted: @Sendable (Key) -> Bool) async throws {
    try await cache.clear(where: isWanted)
  }

  /// Forgets the value of a key in memory, as ``clearMemory()`` does for all keys.
  ///
  /// A stored copy stays, and a fetch that is under way goes on.
  ///
  /// - Parameter key: The key.
  public nonisolated func clearMemory(_ key: Key) {
    cache.clearMemory(key, hash: cache.hasher.hash(key))
  }
}
