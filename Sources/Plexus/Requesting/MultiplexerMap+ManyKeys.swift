extension MultiplexerMap {
  // MARK: - The keys in memory

  /// The number of keys with a value in memory, fresh or stale.
  public nonisolated var count: Int {
    cache.count
  }

  /// The keys with a value in memory, fresh or stale, in no particular order.
  ///
  /// Reading them takes time in proportion to their number.
  public nonisolated var keys: [Key] {
    cache.keys
  }

  // MARK: - Commands for several keys

  /// Stores several values, like ``store(_:for:)``.
  ///
  /// Each key changes atomically, but not all of them at the same moment.
  ///
  /// - Parameter values: The values by key.
  @inlinable
  public nonisolated func store(_ values: [Key: Value]) {
    for (key, value) in values { store(value, for: key) }
  }

  /// Starts to fetch missing and stale keys, and returns immediately.
  ///
  /// Use it for keys that are likely to be requested soon, such as the next rows of a list. Keys in flight are skipped.
  /// A map that was created with `bulk` fetches all of them with one call. The fetches run to their end, with or
  /// without callers. Their failures are published to subscribers but not remembered: the next request fetches again.
  /// Prefetches are not counted in the ``CacheStatistics/hits``, ``CacheStatistics/misses`` and
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

  /// Marks the values of several keys as changed, like ``refresh(_:)-(Key)``.
  ///
  /// - Parameter keys: The keys.
  /// - Returns: A reference to the same map. Its requests of a key are answered only with values that were fetched or
  ///   stored after the latest refresh of that key at the time of this call, unless the fetch fails and the policy
  ///   permits the old value.
  @discardableResult
  public nonisolated func refresh(_ keys: some Collection<Key>) -> Self {
    Self(owner: owner, ticket: cache.refresh(keys))
  }

  /// Marks the values of the keys that satisfy a condition as changed.
  ///
  /// - Parameter isWanted: A closure that is called for each key that is in memory or in flight. It can use the map.
  /// - Returns: A reference to the same map. Its requests of a key are answered only with values that were fetched or
  ///   stored after the latest refresh of that key at the time of this call, unless the fetch fails and the policy
  ///   permits the old value.
  @discardableResult
  public nonisolated func refresh(where isWanted: @Sendable (Key) -> Bool) -> Self {
    Self(owner: owner, ticket: cache.refresh(where: isWanted))
  }

  /// Removes the values of several keys, like ``clear(_:)-(Key)``.
  ///
  /// All of them are removed from memory before this call suspends. Their stored copies are removed with one call of
  /// the cacher.
  ///
  /// - Parameter keys: The keys.
  /// - Throws: A ``CacherError`` that names the stored copies that may still exist. This map does not use them, and
  ///   tries to remove them again at the next ``flush()`` or `clear`.
  public nonisolated func clear(_ keys: some Collection<Key> & Sendable) async throws {
    try await cache.clear(keys)
  }

  /// Removes the values of the keys that satisfy a condition.
  ///
  /// Stored copies of keys that are neither in memory nor in flight stay. To remove those, too, clear the keys by name,
  /// or the whole map.
  ///
  /// - Parameter isWanted: A closure that is called for each key that is in memory or in flight. It can use the map.
  /// - Throws: A ``CacherError`` that names the stored copies that may still exist. This map does not use them, and
  ///   tries to remove them again at the next ``flush()`` or `clear`.
  public nonisolated func clear(where isWanted: @Sendable (Key) -> Bool) async throws {
    try await cache.clear(where: isWanted)
  }

  /// Removes the value of a key from memory, like ``clearMemory()``.
  ///
  /// A stored copy stays, and a fetch in flight continues.
  ///
  /// - Parameter key: The key.
  public nonisolated func clearMemory(_ key: Key) {
    cache.clearMemory(key, hash: cache.hasher.hash(key))
  }
}
