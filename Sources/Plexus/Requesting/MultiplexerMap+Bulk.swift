extension MultiplexerMap {
  /// Creates a map that fetches several keys at once.
  ///
  /// ``request(_:)->[Key:Result<Value,Error>]`` fetches all missing keys with one call. With a window, requests of
  /// single keys share a call, too: the window opens with the first key, and the fetch starts when the window closes or
  /// the batch is full. Without a window, a single key is fetched alone. A key whose callers have all left before the
  /// fetch starts is not fetched, unless the policy is ``CachePolicy/UnobservedFetch/finishAndStore``.
  ///
  /// ```swift
  /// let users = MultiplexerMap<Int, String>.bulk(window: .milliseconds(2), maximumBatchSize: 100) { ids in
  ///   Dictionary(uniqueKeysWithValues: ids.map { ($0, "user \($0)") })
  /// }
  ///
  /// async let first = users.request(1)
  /// async let second = users.request(2)
  /// print(try await first, try await second)  // Prints "user 1 user 2"
  /// ```
  ///
  /// - Parameters:
  ///   - id: The name in errors; by default, the name of the type.
  ///   - policy: The rules for caching, and for slow and failing fetches.
  ///   - capacity: The limit for the values in memory.
  ///   - tagging: A closure that returns the tags of a key, by which values are cleared and refreshed together. It must
  ///     always return the same tags for a key.
  ///   - valueTagging: A closure that returns further tags of a value, such as the tenant of a row. It is called for each
  ///     new value, with no lock held, and must always return the same tags for a value.
  ///   - clock: The clock for ages, waits and timeouts.
  ///   - window: How long the first single key of a batch waits for others.
  ///   - maximumBatchSize: The maximum number of keys in a batch; `nil` for no limit.
  ///   - onFetch: A closure that fetches the values of several distinct keys. A key that is missing from its result
  ///     fails with ``MultiplexerError/missingKey(_:)``. Values of other keys are stored, too.
  ///     The closure is released with the map.
  /// - Returns: The map.
  /// - Precondition: The policy's expiry jitter is between 0 and 1, its timeouts are positive, the capacity and the
  ///   window are not negative, and a batch has room for one key.
  @inlinable
  public static func bulk(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    valueTagging: (@Sendable (Key, Value) -> [CacheTag])? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    window: Duration = .zero,
    maximumBatchSize: Int? = nil,
    onFetch: @escaping @concurrent @Sendable ([Key]) async throws -> [Key: Value]
  ) -> MultiplexerMap {
    MultiplexerMap(
      id: id,
      policy: policy,
      capacity: capacity,
      tagging: tagging,
      valueTagging: valueTagging,
      clock: clock,
      batching: BatchWindow.Rules(window: window, maximumSize: maximumBatchSize),
      onFetch: { .values(try await onFetch($0)) }
    )
  }

  /// Creates a map that fetches several keys at once, with a result for each.
  ///
  /// A result is a value, a confirmation of the previous value, or an error, which is not retried. If the closure
  /// itself throws, all keys of the call fail, and the retry policy applies.
  ///
  /// - Parameters:
  ///   - id: The name in errors; by default, the name of the type.
  ///   - policy: The rules for caching, and for slow and failing fetches.
  ///   - capacity: The limit for the values in memory.
  ///   - tagging: A closure that returns the tags of a key, by which values are cleared and refreshed together. It must
  ///     always return the same tags for a key.
  ///   - valueTagging: A closure that returns further tags of a value, such as the tenant of a row. It is called for each
  ///     new value, with no lock held, and must always return the same tags for a value.
  ///   - clock: The clock for ages, waits and timeouts.
  ///   - window: How long the first single key of a batch waits for others.
  ///   - maximumBatchSize: The maximum number of keys in a batch; `nil` for no limit.
  ///   - onFetch: A closure that fetches several distinct keys and returns a result for each. A key that is missing
  ///     from its result fails with ``MultiplexerError/missingKey(_:)``. Values of other keys are stored, too.
  ///     The closure is released with the map.
  /// - Returns: The map.
  /// - Precondition: The policy's expiry jitter is between 0 and 1, its timeouts are positive, the capacity and the
  ///   window are not negative, and a batch has room for one key.
  @inlinable
  @_disfavoredOverload
  public static func bulk(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    valueTagging: (@Sendable (Key, Value) -> [CacheTag])? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    window: Duration = .zero,
    maximumBatchSize: Int? = nil,
    onFetch:
      @escaping @concurrent @Sendable ([Key]) async throws -> [Key: Result<
        FetchResult<Value>, any Error
      >]
  ) -> MultiplexerMap {
    MultiplexerMap(
      id: id,
      policy: policy,
      capacity: capacity,
      tagging: tagging,
      valueTagging: valueTagging,
      clock: clock,
      batching: BatchWindow.Rules(window: window, maximumSize: maximumBatchSize),
      onFetch: { .results(try await onFetch($0)) }
    )
  }

  /// Creates a map that fetches several keys at once and stores copies under your names.
  ///
  /// ``request(_:)->[Key:Result<Value,Error>]`` fetches all missing keys with one call. With a window, requests of
  /// single keys share a call, too: the window opens with the first key, and the fetch starts when the window closes or
  /// the batch is full. Without a window, a single key is fetched alone. A key whose callers have all left before the
  /// fetch starts is not fetched, unless the policy is ``CachePolicy/UnobservedFetch/finishAndStore``.
  ///
  /// ```swift
  /// let users = MultiplexerMap<Int, String>.bulk(window: .milliseconds(2), maximumBatchSize: 100) { ids in
  ///   Dictionary(uniqueKeysWithValues: ids.map { ($0, "user \($0)") })
  /// }
  ///
  /// async let first = users.request(1)
  /// async let second = users.request(2)
  /// print(try await first, try await second)  // Prints "user 1 user 2"
  /// ```
  ///
  /// - Parameters:
  ///   - id: The name in errors, and the namespace of the entries in the cacher. A map without an id is named after
  ///     its type, shares its entries with others of that type, and clears the whole cacher.
  ///   - policy: The rules for caching, and for slow and failing fetches.
  ///   - capacity: The limit for the values in memory.
  ///   - cacher: Persistent storage for the values, if any. The key of an entry consists of the id and the name
  ///     of the key.
  ///   - keyName: A closure that returns the name of a key. Equal keys must have the same name, and different keys must
  ///     have different names: keys with the same name would share a stored value.
  ///   - tagging: A closure that returns the tags of a key, by which values are cleared and refreshed together. It must
  ///     always return the same tags for a key.
  ///   - valueTagging: A closure that returns further tags of a value, such as the tenant of a row. It is called for each
  ///     new value, with no lock held, and must always return the same tags for a value.
  ///   - clock: The clock for ages, waits and timeouts.
  ///   - window: How long the first single key of a batch waits for others.
  ///   - maximumBatchSize: The maximum number of keys in a batch; `nil` for no limit.
  ///   - onFetch: A closure that fetches the values of several distinct keys. A key that is missing from its result
  ///     fails with ``MultiplexerError/missingKey(_:)``. Values of other keys are stored, too.
  ///     The closure is released with the map.
  /// - Returns: The map.
  /// - Precondition: The policy's expiry jitter is between 0 and 1, its timeouts are positive, the capacity and the
  ///   window are not negative, and a batch has room for one key.
  @inlinable
  public static func bulk(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    cacher: (any Cacher<Value>)?,
    keyName: @escaping @Sendable (Key) -> String,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    valueTagging: (@Sendable (Key, Value) -> [CacheTag])? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    window: Duration = .zero,
    maximumBatchSize: Int? = nil,
    onFetch: @escaping @concurrent @Sendable ([Key]) async throws -> [Key: Value]
  ) -> MultiplexerMap {
    MultiplexerMap(
      id: id,
      policy: policy,
      capacity: capacity,
      cacher: cacher,
      text: { StoredNames.text(of: keyName($0)) },
      tagging: tagging,
      valueTagging: valueTagging,
      clock: clock,
      batching: BatchWindow.Rules(window: window, maximumSize: maximumBatchSize),
      onFetch: { .values(try await onFetch($0)) }
    )
  }

  /// Creates a map that fetches several keys at once, with a result for each, and stores copies under your names.
  ///
  /// A result is a value, a confirmation of the previous value, or an error, which is not retried. If the closure
  /// itself throws, all keys of the call fail, and the retry policy applies.
  ///
  /// - Parameters:
  ///   - id: The name in errors, and the namespace of the entries in the cacher. A map without an id is named after
  ///     its type, shares its entries with others of that type, and clears the whole cacher.
  ///   - policy: The rules for caching, and for slow and failing fetches.
  ///   - capacity: The limit for the values in memory.
  ///   - cacher: Persistent storage for the values, if any. The key of an entry consists of the id and the name
  ///     of the key.
  ///   - keyName: A closure that returns the name of a key. Equal keys must have the same name, and different keys must
  ///     have different names: keys with the same name would share a stored value.
  ///   - tagging: A closure that returns the tags of a key, by which values are cleared and refreshed together. It must
  ///     always return the same tags for a key.
  ///   - valueTagging: A closure that returns further tags of a value, such as the tenant of a row. It is called for each
  ///     new value, with no lock held, and must always return the same tags for a value.
  ///   - clock: The clock for ages, waits and timeouts.
  ///   - window: How long the first single key of a batch waits for others.
  ///   - maximumBatchSize: The maximum number of keys in a batch; `nil` for no limit.
  ///   - onFetch: A closure that fetches several distinct keys and returns a result for each. A key that is missing
  ///     from its result fails with ``MultiplexerError/missingKey(_:)``. Values of other keys are stored, too.
  ///     The closure is released with the map.
  /// - Returns: The map.
  /// - Precondition: The policy's expiry jitter is between 0 and 1, its timeouts are positive, the capacity and the
  ///   window are not negative, and a batch has room for one key.
  @inlinable
  @_disfavoredOverload
  public static func bulk(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    cacher: (any Cacher<Value>)?,
    keyName: @escaping @Sendable (Key) -> String,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    valueTagging: (@Sendable (Key, Value) -> [CacheTag])? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    window: Duration = .zero,
    maximumBatchSize: Int? = nil,
    onFetch:
      @escaping @concurrent @Sendable ([Key]) async throws -> [Key: Result<
        FetchResult<Value>, any Error
      >]
  ) -> MultiplexerMap {
    MultiplexerMap(
      id: id,
      policy: policy,
      capacity: capacity,
      cacher: cacher,
      text: { StoredNames.text(of: keyName($0)) },
      tagging: tagging,
      valueTagging: valueTagging,
      clock: clock,
      batching: BatchWindow.Rules(window: window, maximumSize: maximumBatchSize),
      onFetch: { .results(try await onFetch($0)) }
    )
  }
}

extension MultiplexerMap where Key: LosslessStringConvertible {
  /// Creates a map that fetches several keys at once and stores copies.
  ///
  /// ``request(_:)->[Key:Result<Value,Error>]`` fetches all missing keys with one call. With a window, requests of
  /// single keys share a call, too: the window opens with the first key, and the fetch starts when the window closes or
  /// the batch is full. Without a window, a single key is fetched alone. A key whose callers have all left before the
  /// fetch starts is not fetched, unless the policy is ``CachePolicy/UnobservedFetch/finishAndStore``.
  ///
  /// ```swift
  /// let users = MultiplexerMap<Int, String>.bulk(window: .milliseconds(2), maximumBatchSize: 100) { ids in
  ///   Dictionary(uniqueKeysWithValues: ids.map { ($0, "user \($0)") })
  /// }
  ///
  /// async let first = users.request(1)
  /// async let second = users.request(2)
  /// print(try await first, try await second)  // Prints "user 1 user 2"
  /// ```
  ///
  /// - Parameters:
  ///   - id: The name in errors, and the namespace of the entries in the cacher. A map without an id is named after
  ///     its type, shares its entries with others of that type, and clears the whole cacher.
  ///   - policy: The rules for caching, and for slow and failing fetches.
  ///   - capacity: The limit for the values in memory.
  ///   - cacher: Persistent storage for the values, if any. The key of an entry consists of the id and the
  ///     description of the key.
  ///   - tagging: A closure that returns the tags of a key, by which values are cleared and refreshed together. It must
  ///     always return the same tags for a key.
  ///   - valueTagging: A closure that returns further tags of a value, such as the tenant of a row. It is called for each
  ///     new value, with no lock held, and must always return the same tags for a value.
  ///   - clock: The clock for ages, waits and timeouts.
  ///   - window: How long the first single key of a batch waits for others.
  ///   - maximumBatchSize: The maximum number of keys in a batch; `nil` for no limit.
  ///   - onFetch: A closure that fetches the values of several distinct keys. A key that is missing from its result
  ///     fails with ``MultiplexerError/missingKey(_:)``. Values of other keys are stored, too.
  ///     The closure is released with the map.
  /// - Returns: The map.
  /// - Precondition: The policy's expiry jitter is between 0 and 1, its timeouts are positive, the capacity and the
  ///   window are not negative, and a batch has room for one key.
  @inlinable
  public static func bulk(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    cacher: (any Cacher<Value>)?,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    valueTagging: (@Sendable (Key, Value) -> [CacheTag])? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    window: Duration = .zero,
    maximumBatchSize: Int? = nil,
    onFetch: @escaping @concurrent @Sendable ([Key]) async throws -> [Key: Value]
  ) -> MultiplexerMap {
    MultiplexerMap(
      id: id,
      policy: policy,
      capacity: capacity,
      cacher: cacher,
      text: { StoredNames.text(of: $0) },
      tagging: tagging,
      valueTagging: valueTagging,
      clock: clock,
      batching: BatchWindow.Rules(window: window, maximumSize: maximumBatchSize),
      onFetch: { .values(try await onFetch($0)) }
    )
  }

  /// Creates a map that fetches several keys at once, with a result for each, and stores copies.
  ///
  /// A result is a value, a confirmation of the previous value, or an error, which is not retried. If the closure
  /// itself throws, all keys of the call fail, and the retry policy applies.
  ///
  /// - Parameters:
  ///   - id: The name in errors, and the namespace of the entries in the cacher. A map without an id is named after
  ///     its type, shares its entries with others of that type, and clears the whole cacher.
  ///   - policy: The rules for caching, and for slow and failing fetches.
  ///   - capacity: The limit for the values in memory.
  ///   - cacher: Persistent storage for the values, if any. The key of an entry consists of the id and the
  ///     description of the key.
  ///   - tagging: A closure that returns the tags of a key, by which values are cleared and refreshed together. It must
  ///     always return the same tags for a key.
  ///   - valueTagging: A closure that returns further tags of a value, such as the tenant of a row. It is called for each
  ///     new value, with no lock held, and must always return the same tags for a value.
  ///   - clock: The clock for ages, waits and timeouts.
  ///   - window: How long the first single key of a batch waits for others.
  ///   - maximumBatchSize: The maximum number of keys in a batch; `nil` for no limit.
  ///   - onFetch: A closure that fetches several distinct keys and returns a result for each. A key that is missing
  ///     from its result fails with ``MultiplexerError/missingKey(_:)``. Values of other keys are stored, too.
  ///     The closure is released with the map.
  /// - Returns: The map.
  /// - Precondition: The policy's expiry jitter is between 0 and 1, its timeouts are positive, the capacity and the
  ///   window are not negative, and a batch has room for one key.
  @inlinable
  @_disfavoredOverload
  public static func bulk(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    cacher: (any Cacher<Value>)?,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    valueTagging: (@Sendable (Key, Value) -> [CacheTag])? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    window: Duration = .zero,
    maximumBatchSize: Int? = nil,
    onFetch:
      @escaping @concurrent @Sendable ([Key]) async throws -> [Key: Result<
        FetchResult<Value>, any Error
      >]
  ) -> MultiplexerMap {
    MultiplexerMap(
      id: id,
      policy: policy,
      capacity: capacity,
      cacher: cacher,
      text: { StoredNames.text(of: $0) },
      tagging: tagging,
      valueTagging: valueTagging,
      clock: clock,
      batching: BatchWindow.Rules(window: window, maximumSize: maximumBatchSize),
      onFetch: { .results(try await onFetch($0)) }
    )
  }
}
