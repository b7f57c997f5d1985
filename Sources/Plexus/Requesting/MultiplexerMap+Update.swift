extension MultiplexerMap {
  /// Changes the value of a key in memory, atomically.
  ///
  /// The change takes precedence over a fetch of the key in flight, whose callers get the changed value. The next
  /// ``flush()`` writes it. The value keeps its age, its deadline and a pending refresh.
  ///
  /// ```swift
  /// let scores = MultiplexerMap<String, Int> { _ in 0 }
  /// scores.store(1, for: "Ada")
  /// scores.update("Ada") { $0 += 1 }
  /// print(scores.cachedValue("Ada") ?? 0)  // Prints "2"
  /// ```
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - body: A closure that changes the value. It runs without a lock, and again if another task has replaced the
  ///     value meanwhile. It must not replace the value of the same key every time it runs.
  /// - Returns: The changed value; `nil` if there is no value in memory, in which case `body` does not run.
  /// - Throws: The error of `body`, which leaves the value unchanged.
  @inlinable
  @discardableResult
  public nonisolated func update(
    _ key: Key,
    _ body: @Sendable (inout Value) throws -> Void
  ) rethrows -> Value? {
    try cache.update(key, hash: cache.hasher.hash(key), body)
  }
}

extension MultiplexerMap {
  /// Changes the value of a key in memory immediately, and rolls the change back if the commit fails.
  ///
  /// The change is visible before the call suspends, and takes precedence over fetches that started before it. A flush
  /// writes it only after the commit. If `commit` throws, the change is removed, and later optimistic updates are
  /// applied again without it. If that is impossible, because ``update(_:_:)`` has changed the value since, the key is
  /// refreshed. If the value was stored, cleared or fetched since, nothing is rolled back.
  ///
  /// A value that was fetched while `commit` ran, or is being fetched when it returns, can be older than its effect, so
  /// the key is refreshed when `commit` returns. The same applies if the value was evicted or cleared, or did not exist
  /// when the update started.
  ///
  /// ```swift
  /// let likes = MultiplexerMap<Int, Int> { _ in 0 }
  /// likes.store(1, for: 7)
  /// try await likes.update(7, optimistically: { $0 += 1 }) {
  ///   // Send the change to the server here.
  /// }
  /// print(likes.cachedValue(7) ?? 0)  // Prints "2"
  /// ```
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - change: A closure that changes the value. It runs without a lock, and possibly several times. It does not run
  ///     without a value.
  ///   - commit: A closure that makes the change at the origin. It runs once, with or without a value.
  /// - Returns: The result of `commit`.
  /// - Throws: The error of `commit`.
  @inlinable
  @discardableResult
  public nonisolated func update<Result: Sendable>(
    _ key: Key,
    optimistically change: @escaping @Sendable (inout Value) -> Void,
    commit: @concurrent @Sendable () async throws -> Result
  ) async throws -> Result {
    try await cache.update(
      key,
      hash: cache.hasher.hash(key),
      optimistically: change,
      commit: commit
    )
  }
}

extension Multiplexer {
  /// Changes the value in memory immediately, and rolls the change back if the commit fails.
  ///
  /// For details, see ``MultiplexerMap/update(_:optimistically:commit:)``.
  ///
  /// - Parameters:
  ///   - change: A closure that changes the value. It runs without a lock, and possibly several times. It does not run
  ///     without a value.
  ///   - commit: A closure that makes the change at the origin. It runs once, with or without a value.
  /// - Returns: The result of `commit`.
  /// - Throws: The error of `commit`.
  @inlinable
  @discardableResult
  public nonisolated func update<Result: Sendable>(
    optimistically change: @escaping @Sendable (inout Value) -> Void,
    commit: @concurrent @Sendable () async throws -> Result
  ) async throws -> Result {
    try await cache.update(SingleKey(), hash: 0, optimistically: change, commit: commit)
  }

  /// Changes the value in memory, atomically.
  ///
  /// For details, see ``MultiplexerMap/update(_:_:)``.
  ///
  /// - Parameter body: A closure that changes the value. It runs without a lock, and again if another task has replaced
  ///   the value meanwhile.
  /// - Returns: The changed value; `nil` if there is no value in memory, in which case `body` does not run.
  /// - Throws: The error of `body`, which leaves the value unchanged.
  @inlinable
  @discardableResult
  public nonisolated func update(
    _ body: @Sendable (inout Value) throws -> Void
  ) rethrows -> Value? {
    try cache.update(SingleKey(), hash: 0, body)
  }

  /// Starts to fetch the value if it is missing or stale, and returns immediately.
  ///
  /// For details, see ``MultiplexerMap/prefetch(_:)``.
  public nonisolated func prefetch() {
    cache.prefetch(SingleKey(), hash: 0)
  }
}

extension MultiplexerMap.Entry {
  /// Changes the value in memory, atomically.
  ///
  /// For details, see ``MultiplexerMap/update(_:_:)``.
  ///
  /// - Parameter body: A closure that changes the value. It runs without a lock, and again if another task has replaced
  ///   the value meanwhile.
  /// - Returns: The changed value; `nil` if there is no value in memory, in which case `body` does not run.
  /// - Throws: The error of `body`, which leaves the value unchanged.
  @inlinable
  @discardableResult
  public func update(_ body: @Sendable (inout Value) throws -> Void) rethrows -> Value? {
    try cache.update(key, hash: hash, body)
  }

  /// Changes the value in memory immediately, and rolls the change back if the commit fails.
  ///
  /// For details, see ``MultiplexerMap/update(_:optimistically:commit:)``.
  ///
  /// - Parameters:
  ///   - change: A closure that changes the value. It runs without a lock, and possibly several times. It does not run
  ///     without a value.
  ///   - commit: A closure that makes the change at the origin. It runs once, with or without a value.
  /// - Returns: The result of `commit`.
  /// - Throws: The error of `commit`.
  @discardableResult
  public func update<Result: Sendable>(
    optimistically change: @escaping @Sendable (inout Value) -> Void,
    commit: @concurrent @Sendable () async throws -> Result
  ) async throws -> Result {
    try await cache.update(key, hash: hash, optimistically: change, commit: commit)
  }

  /// Starts to fetch the value if it is missing or stale, and returns immediately.
  ///
  /// For details, see ``MultiplexerMap/prefetch(_:)``.
  public func prefetch() {
    cache.prefetch(key, hash: hash)
  }

  /// Removes the value from memory, like ``MultiplexerMap/clearMemory(_:)``.
  public func clearMemory() {
    cache.clearMemory(key, hash: hash)
  }
}
