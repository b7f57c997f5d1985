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
  ///   - body: Changes the value. It runs without a lock, and runs again if the value was replaced meanwhile. It must
  ///     not replace the value of the same key each time that it runs.
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

extension MultiplexerMap {
  /// Changes the value of a key in memory at once, and takes the change back if it cannot be committed.
  ///
  /// The change is in place before the call suspends, and wins over fetches that began before it. It is written by a
  /// flush only once it is committed. If `commit` throws, the change is taken out: changes that were made later by
  /// other optimistic updates are applied again without it. Where that is impossible, because
  /// ``update(_:_:)`` has changed the value since, the key is refreshed. Nothing is taken back if the value was stored,
  /// cleared or fetched since.
  ///
  /// A value that was fetched while `commit` ran may be from before it: the key is refreshed when `commit` returns.
  /// The same applies to a value that was evicted or cleared, or was not there when the update began.
  ///
  /// ```swift
  /// let likes = MultiplexerMap<Int, Int> { _ in 0 }
  /// likes.store(1, for: 7)
  /// try await likes.update(7, optimistically: { $0 += 1 }) {
  ///   // Send the change to the server here.
  /// }
  /// print(likes.cachedValue(7) ?? 0)  // 2
  /// ```
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - change: Changes the value. It runs without a lock, and can run several times. Without a value it does not run.
  ///   - commit: Makes the change at the origin. It runs once, with or without a value.
  /// - Returns: The result of `commit`.
  /// - Throws: The error of `commit`.
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
  /// Changes the value in memory at once, and takes the change back if it cannot be committed.
  ///
  /// What follows is described at ``MultiplexerMap/update(_:optimistically:commit:)``.
  ///
  /// - Parameters:
  ///   - change: Changes the value. It runs without a lock, and can run several times. Without a value it does not run.
  ///   - commit: Makes the change at the origin. It runs once, with or without a value.
  /// - Returns: The result of `commit`.
  /// - Throws: The error of `commit`.
  @discardableResult
  public nonisolated func update<Result: Sendable>(
    optimistically change: @escaping @Sendable (inout Value) -> Void,
    commit: @concurrent @Sendable () async throws -> Result
  ) async throws -> Result {
    try await cache.update(SingleKey(), hash: 0, optimistically: change, commit: commit)
  }

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

extension MultiplexerMap.Entry {
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
  public func update(_ body: @Sendable (inout Value) throws -> Void) rethrows -> Value? {
    try cache.update(key, hash: hash, body)
  }

  /// Changes the value in memory at once, and takes the change back if it cannot be committed.
  ///
  /// What follows is described at ``MultiplexerMap/update(_:optimistically:commit:)``.
  ///
  /// - Parameters:
  ///   - change: Changes the value. It runs without a lock, and can run several times. Without a value it does not run.
  ///   - commit: Makes the change at the origin. It runs once, with or without a value.
  /// - Returns: The result of `commit`.
  /// - Throws: The error of `commit`.
  @discardableResult
  public func update<Result: Sendable>(
    optimistically change: @escaping @Sendable (inout Value) -> Void,
    commit: @concurrent @Sendable () async throws -> Result
  ) async throws -> Result {
    try await cache.update(key, hash: hash, optimistically: change, commit: commit)
  }

  /// Starts fetching the value if it is not fresh and not being fetched, and returns at once.
  ///
  /// What follows is described at ``MultiplexerMap/prefetch(_:)``.
  public func prefetch() {
    cache.prefetch(key, hash: hash)
  }

  /// Forgets the value in memory, as ``MultiplexerMap/clearMemory(_:)`` does.
  public func clearMemory() {
    cache.clearMemory(key, hash: hash)
  }
}
