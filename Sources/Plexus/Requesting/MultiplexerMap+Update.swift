extension MultiplexerMap {
  /// Changes the value of a key in memory, atomically.
  ///
  /// The change takes precedence over a fetch of the key in flight, whose callers get the changed value. The next
  /// ``flush()`` writes it. The value keeps its age, its deadline and a pending refresh: a request that requires the
  /// refresh is not answered with the changed value, and neither is one that waits because the value is stale and must not
  /// be used (``CacheDirectives/requiresRevalidation``).
  ///
  /// While optimistic updates of the key are not committed, `body` also runs on the values that are left if some of them
  /// fail, so that the change stays without them. If one of them fails, the key is refreshed as well. While more than
  /// eight are not committed, the change is made below them.
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
  ///     value meanwhile, or while optimistic updates are not committed. It must not replace the value of the same key
  ///     every time it runs.
  /// - Returns: The changed value; `nil` if there is no value in memory, in which case `body` does not run.
  /// - Throws: The error of `body`, which leaves the value unchanged.
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
  /// writes it only after the commit. If `commit` throws, the change is removed, and later changes stay.
  ///
  /// The change stays on top of every value that arrives before `commit` has returned, by a fetch,
  /// ``store(_:for:)`` or from the cacher, and also of the value of a fetch that is in flight at that time: it does not
  /// disappear from the screen and come back. Such a value can lack the change or already contain it, so one fetch
  /// starts when `commit` has returned, and requests wait for it. Its value replaces the change. A value that `commit`
  /// itself stores replaces the change at once.
  ///
  /// A clear removes the change. If the value was cleared or evicted, or did not exist, and there is no value when
  /// `commit` returns, the next request fetches.
  ///
  /// Callers that wait for a fetch get its value without the change.
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
  ///   - change: A closure that changes the value. It runs without a lock, and again for each value that arrives before
  ///     the commit has ended. It does not run without a value.
  ///   - commit: A closure that makes the change at the origin. It runs once, with or without a value.
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
  /// Changes the value in memory immediately, and rolls the change back if the commit fails.
  ///
  /// The change stays on top of every value that is fetched or stored before the commit has ended. If there was one, a
  /// fetch starts when the commit has ended, and its value replaces the change. For details, see
  /// ``MultiplexerMap/update(_:optimistically:commit:)``.
  ///
  /// - Parameters:
  ///   - change: A closure that changes the value. It runs without a lock, and again for each value that arrives before
  ///     the commit has ended. It does not run without a value.
  ///   - commit: A closure that makes the change at the origin. It runs once, with or without a value.
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
  /// For details, see ``MultiplexerMap/update(_:_:)``.
  ///
  /// - Parameter body: A closure that changes the value. It runs without a lock, and again if another task has replaced
  ///   the value meanwhile.
  /// - Returns: The changed value; `nil` if there is no value in memory, in which case `body` does not run.
  /// - Throws: The error of `body`, which leaves the value unchanged.
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
  @discardableResult
  public func update(_ body: @Sendable (inout Value) throws -> Void) rethrows -> Value? {
    try cache.update(key, hash: hash, body)
  }

  /// Changes the value in memory immediately, and rolls the change back if the commit fails.
  ///
  /// The change stays on top of every value that is fetched or stored before the commit has ended. If there was one, a
  /// fetch starts when the commit has ended, and its value replaces the change. For details, see
  /// ``MultiplexerMap/update(_:optimistically:commit:)``.
  ///
  /// - Parameters:
  ///   - change: A closure that changes the value. It runs without a lock, and again for each value that arrives before
  ///     the commit has ended. It does not run without a value.
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
