extension MultiplexerMap {
  /// Forgets the values whose keys have one of some tags, as ``clear(_:)-(Key)`` does.
  ///
  /// All of them are forgotten, and their fetches cut off, before this call suspends. The call takes time in
  /// proportion to their number, however many others there are. Stored copies of values that are in memory are
  /// removed when it returns. A copy that is only stored is compared with the time of this call when it is read
  /// next: one from before is not used, and is removed. This map remembers that until it is released; a program
  /// that ends earlier keeps such copies, so that signing out calls for ``clear()``.
  ///
  /// - Parameter tags: The tags. Keys get theirs from the closure that the map was created with.
  /// - Throws: A ``CacherError`` that names the stored copies that may still be there. This map does not use them
  ///   any more, and tries again to remove them at the next ``flush()`` or `clear`.
  public nonisolated func clear(tags: Set<CacheTag>) async throws {
    try await cache.clear(tags: tags)
  }

  /// Invalidates the values whose keys have one of some tags, as ``refresh(_:)-(Key)`` does.
  ///
  /// A stored copy from before this call is out of date when it is read.
  ///
  /// - Parameter tags: The tags. Keys get theirs from the closure that the map was created with.
  /// - Returns: A reference to the same map. Its requests are answered with what was fetched or stored
  ///   after the key's own newest refresh, of those up to this call.
  @discardableResult
  public nonisolated func refresh(tags: Set<CacheTag>) -> Self {
    Self(owner: owner, ticket: cache.refresh(tags: tags))
  }
}
