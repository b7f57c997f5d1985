extension MultiplexerMap {
  /// Changes the value of a key in memory, atomically.
  ///
  /// The change wins over every fetch of the key under way, whose callers get the changed value, and is written
  /// by the next ``flush()``. The value keeps its age and its deadline, and a refresh that no fetch has served
  /// yet is still to be served.
  ///
  /// ```swift
  /// let scores = MultiplexerMap<String, Int> { _ in 0 }
  /// scores.store(1, for: "Ada")
  /// scores.update("Ada") { $0 += 1 }
  /// print(scores.cachedValue("Ada") ?? 0)  // 2
  /// ```
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - body: Changes the value. It runs without a lock, and runs again if another task has replaced the value
  ///     meanwhile.
  /// - Returns: The changed value; `nil` if there is no value in memory, in which case `body` does not run.
  /// - Throws: The error of `body`, which leaves the value as it is.
  @inlinable
  @discardableResult
  public nonisolated func update(
    _ key: Key,
    _ body: @Sendable (inout Value) throws -> Void
  ) rethrows -> Value? {
    try cache.update(key, hash: cache.hasher.hash(key), body)
  }
}

extension Multiplexer {
  /// Changes the value in memory, atomically.
  ///
  /// What follows is described at ``MultiplexerMap/update(_:_:)``.
  ///
  /// - Parameter body: Changes the value. It runs without a lock, and runs again if another task has replaced the
  ///   value meanwhile.
  /// - Returns: The changed value; `nil` if there is no value in memory, in which case `body` does not run.
  /// - Throws: The error of `body`, which leaves the value as it is.
  @inlinable
  @discardableResult
  public nonisolated func update(
    _ body: @Sendable (inout Value) throws -> Void
  ) rethrows -> Value? {
    try cache.update(SingleKey(), hash: 0, body)
  }

  /// Starts fetching the value if it is not fresh and not being fetched, and returns at once.
  ///
  /// What follows is described at ``MultiplexerMap/prefetch(_:)``.
  public nonisolated func prefetch() {
    cache.prefetch(SingleKey(), hash: 0)
  }
}
