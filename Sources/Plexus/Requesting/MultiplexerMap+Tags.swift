extension MultiplexerMap {
  /// Removes the values with at least one of the given tags, like ``clear(_:)-(Key)``.
  ///
  /// All of them are removed from memory, and their fetches are detached, before this call suspends. The call takes
  /// time proportional to their number, regardless of the size of the map. When it returns, the stored copies of values
  /// that were in memory are removed. A copy that exists only in storage is checked when it is read next: if it is
  /// older than this call, it is not used, and is removed. `JSONFileCacher` and `JSONLogCacher` record the call for all
  /// instances and processes, which do not write values whose fetches began before it. With other cachers, it applies
  /// to the maps of this process that share the cacher, as long as one of them exists. To sign out, call ``clear()``. A
  /// ``SharedCacher`` removes all of them, for all processes.
  ///
  /// - Parameter tags: The tags. The closures passed at the creation of the map assign them to keys and values.
  /// - Throws: A ``CacherError`` that names the stored copies that may still exist. This map does not use them, and
  ///   tries to remove them again at the next ``flush()`` or `clear`.
  public nonisolated func clear(tags: Set<CacheTag>) async throws {
    try await cache.clear(tags: tags)
  }

  /// Marks the values with at least one of the given tags as changed, like ``refresh(_:)-(Key)``.
  ///
  /// A stored copy whose fetch began before this call is stale when it is read, by this map and by the maps of this
  /// process that share its cacher. With `JSONFileCacher` and `JSONLogCacher`, this applies to all instances and
  /// processes as soon as the call is recorded there, which happens in the background and is complete at the next
  /// ``flush()``.
  ///
  /// With a ``SharedCacher``, the keys that this process has in memory are refreshed for all processes, as by
  /// ``refresh(_:)-(Key)``. Entries of other keys are stale for this process only: another process uses its copies, and
  /// reads such entries, until this process has fetched a newer value. To invalidate all entries with a tag for all
  /// processes, call ``clear(tags:)``.
  ///
  /// - Parameter tags: The tags. The closures passed at the creation of the map assign them to keys and values.
  /// - Returns: A reference to the same map. Its requests of a key are answered only with values that were fetched or
  ///   stored after the latest refresh of that key at the time of this call, unless the fetch fails and the policy
  ///   permits the old value.
  @discardableResult
  public nonisolated func refresh(tags: Set<CacheTag>) -> Self {
    Self(owner: owner, ticket: cache.refresh(tags: tags))
  }
}
