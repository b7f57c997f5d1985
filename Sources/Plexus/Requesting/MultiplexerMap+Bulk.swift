extension MultiplexerMap {
  /// Creates a map of what a closure fetches for several keys at once.
  ///
  /// ``request(_:)->[Key:Result<Value,Error>]`` fetches all that is missing with one call. Requests of single keys
  /// share a call if they come within a window: it begins with the first key, and the fetch begins at its end, or as
  /// soon as the batch is full. Without a window a single key is fetched alone. A key whose callers have all left
  /// before the fetch begins is not fetched, unless the policy says ``UnobservedFetch/finishAndStore``.
  ///
  /// ```swift
  /// let users = MultiplexerMap<Int, String>.bulk(window: .milliseconds(2), maximumBatchSize: 100) { ids in
  ///   Dictionary(uniqueKeysWithValues: ids.map { ($0, "user \($0)") })
  /// }
  ///
  /// async let first = users.request(1)
  /// async let second = users.request(2)
  /// print(try await first, try await second)
  /// ```
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors; its type if there is none.
  ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
  ///   - capacity: How much is kept in memory.
  ///   - tagging: Returns the tags of a key, by which values are cleared and refreshed together: always the
  ///     same for a key.
  ///   - clock: What measures the age of values, waits and timeouts.
  ///   - window: How long the first key of a batch waits for others that are requested one by one.
  ///   - maximumBatchSize: The largest number of keys in a batch; `nil` for no limit.
  ///   - onFetch: What fetches the values of keys, each of them once; a key that it returns nothing for
  ///     fails with ``MultiplexerError/missingKey(_:)``. It is released with the map.
  /// - Returns: The map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, its timeouts are positive, the capacity and
  ///   the window are not negative, and a batch has room for one key.
  @inlinable
  public static func bulk(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
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
      clock: clock,
      batching: BatchRules(window: window, maximumSize: maximumBatchSize),
      onFetch: { .values(try await onFetch($0)) }
    )
  }

  /// Creates a map of what a closure fetches for several keys at once, with a result for each.
  ///
  /// A result is a value, a confirmation of the value that is there, or an error, which is not tried again. If the
  /// closure itself throws, all keys of the call have failed, and the retry policy applies.
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors; its type if there is none.
  ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
  ///   - capacity: How much is kept in memory.
  ///   - tagging: Returns the tags of a key, by which values are cleared and refreshed together: always the
  ///     same for a key.
  ///   - clock: What measures the age of values, waits and timeouts.
  ///   - window: How long the first key of a batch waits for others that are requested one by one.
  ///   - maximumBatchSize: The largest number of keys in a batch; `nil` for no limit.
  ///   - onFetch: What fetches the keys, each of them once, and returns a result for each; a key that it returns
  ///     nothing for fails with ``MultiplexerError/missingKey(_:)``. It is released with the map.
  /// - Returns: The map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, its timeouts are positive, the capacity and
  ///   the window are not negative, and a batch has room for one key.
  @inlinable
  @_disfavoredOverload
  public static func bulk(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
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
      clock: clock,
      batching: BatchRules(window: window, maximumSize: maximumBatchSize),
      onFetch: { .results(try await onFetch($0)) }
    )
  }

  /// Creates a map of what a closure fetches for several keys at once, with stored copies under names of your own.
  ///
  /// ``request(_:)->[Key:Result<Value,Error>]`` fetches all that is missing with one call. Requests of single keys
  /// share a call if they come within a window: it begins with the first key, and the fetch begins at its end, or as
  /// soon as the batch is full. Without a window a single key is fetched alone. A key whose callers have all left
  /// before the fetch begins is not fetched, unless the policy says ``UnobservedFetch/finishAndStore``.
  ///
  /// ```swift
  /// let users = MultiplexerMap<Int, String>.bulk(window: .milliseconds(2), maximumBatchSize: 100) { ids in
  ///   Dictionary(uniqueKeysWithValues: ids.map { ($0, "user \($0)") })
  /// }
  ///
  /// async let first = users.request(1)
  /// async let second = users.request(2)
  /// print(try await first, try await second)
  /// ```
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors, and the namespace of its entries in the cacher. A map
  ///     without one appears by its type, shares its entries with others like it, and clears the whole cacher.
  ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
  ///   - capacity: How much is kept in memory.
  ///   - cacher: Persistent storage for the values, if any. Their keys there are made of the id and the
  ///     name of each key.
  ///   - keyName: Returns the name of a key: the same for equal keys, and different ones for others. Two keys with
  ///     one name would share a stored value.
  ///   - tagging: Returns the tags of a key, by which values are cleared and refreshed together: always the
  ///     same for a key.
  ///   - clock: What measures the age of values, waits and timeouts.
  ///   - window: How long the first key of a batch waits for others that are requested one by one.
  ///   - maximumBatchSize: The largest number of keys in a batch; `nil` for no limit.
  ///   - onFetch: What fetches the values of keys, each of them once; a key that it returns nothing for
  ///     fails with ``MultiplexerError/missingKey(_:)``. It is released with the map.
  /// - Returns: The map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, its timeouts are positive, the capacity and
  ///   the window are not negative, and a batch has room for one key.
  @inlinable
  public static func bulk(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    cacher: (any Cacher<Value>)?,
    keyName: @escaping @Sendable (Key) -> String,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
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
      clock: clock,
      batching: BatchRules(window: window, maximumSize: maximumBatchSize),
      onFetch: { .values(try await onFetch($0)) }
    )
  }

  /// Creates a map of what a closure fetches for several keys at once, with a result for each, with stored copies under names of your own.
  ///
  /// A result is a value, a confirmation of the value that is there, or an error, which is not tried again. If the
  /// closure itself throws, all keys of the call have failed, and the retry policy applies.
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors, and the namespace of its entries in the cacher. A map
  ///     without one appears by its type, shares its entries with others like it, and clears the whole cacher.
  ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
  ///   - capacity: How much is kept in memory.
  ///   - cacher: Persistent storage for the values, if any. Their keys there are made of the id and the
  ///     name of each key.
  ///   - keyName: Returns the name of a key: the same for equal keys, and different ones for others. Two keys with
  ///     one name would share a stored value.
  ///   - tagging: Returns the tags of a key, by which values are cleared and refreshed together: always the
  ///     same for a key.
  ///   - clock: What measures the age of values, waits and timeouts.
  ///   - window: How long the first key of a batch waits for others that are requested one by one.
  ///   - maximumBatchSize: The largest number of keys in a batch; `nil` for no limit.
  ///   - onFetch: What fetches the keys, each of them once, and returns a result for each; a key that it returns
  ///     nothing for fails with ``MultiplexerError/missingKey(_:)``. It is released with the map.
  /// - Returns: The map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, its timeouts are positive, the capacity and
  ///   the window are not negative, and a batch has room for one key.
  @inlinable
  @_disfavoredOverload
  public static func bulk(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    cacher: (any Cacher<Value>)?,
    keyName: @escaping @Sendable (Key) -> String,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
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
      clock: clock,
      batching: BatchRules(window: window, maximumSize: maximumBatchSize),
      onFetch: { .results(try await onFetch($0)) }
    )
  }
}

extension MultiplexerMap where Key: LosslessStringConvertible {
  /// Creates a map of what a closure fetches for several keys at once, with stored copies.
  ///
  /// ``request(_:)->[Key:Result<Value,Error>]`` fetches all that is missing with one call. Requests of single keys
  /// share a call if they come within a window: it begins with the first key, and the fetch begins at its end, or as
  /// soon as the batch is full. Without a window a single key is fetched alone. A key whose callers have all left
  /// before the fetch begins is not fetched, unless the policy says ``UnobservedFetch/finishAndStore``.
  ///
  /// ```swift
  /// let users = MultiplexerMap<Int, String>.bulk(window: .milliseconds(2), maximumBatchSize: 100) { ids in
  ///   Dictionary(uniqueKeysWithValues: ids.map { ($0, "user \($0)") })
  /// }
  ///
  /// async let first = users.request(1)
  /// async let second = users.request(2)
  /// print(try await first, try await second)
  /// ```
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors, and the namespace of its entries in the cacher. A map
  ///     without one appears by its type, shares its entries with others like it, and clears the whole cacher.
  ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
  ///   - capacity: How much is kept in memory.
  ///   - cacher: Persistent storage for the values, if any. Their keys there are made of the id and the
  ///     description of each key.
  ///   - tagging: Returns the tags of a key, by which values are cleared and refreshed together: always the
  ///     same for a key.
  ///   - clock: What measures the age of values, waits and timeouts.
  ///   - window: How long the first key of a batch waits for others that are requested one by one.
  ///   - maximumBatchSize: The largest number of keys in a batch; `nil` for no limit.
  ///   - onFetch: What fetches the values of keys, each of them once; a key that it returns nothing for
  ///     fails with ``MultiplexerError/missingKey(_:)``. It is released with the map.
  /// - Returns: The map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, its timeouts are positive, the capacity and
  ///   the window are not negative, and a batch has room for one key.
  @inlinable
  public static func bulk(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    cacher: (any Cacher<Value>)?,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
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
      clock: clock,
      batching: BatchRules(window: window, maximumSize: maximumBatchSize),
      onFetch: { .values(try await onFetch($0)) }
    )
  }

  /// Creates a map of what a closure fetches for several keys at once, with a result for each, with stored copies.
  ///
  /// A result is a value, a confirmation of the value that is there, or an error, which is not tried again. If the
  /// closure itself throws, all keys of the call have failed, and the retry policy applies.
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors, and the namespace of its entries in the cacher. A map
  ///     without one appears by its type, shares its entries with others like it, and clears the whole cacher.
  ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
  ///   - capacity: How much is kept in memory.
  ///   - cacher: Persistent storage for the values, if any. Their keys there are made of the id and the
  ///     description of each key.
  ///   - tagging: Returns the tags of a key, by which values are cleared and refreshed together: always the
  ///     same for a key.
  ///   - clock: What measures the age of values, waits and timeouts.
  ///   - window: How long the first key of a batch waits for others that are requested one by one.
  ///   - maximumBatchSize: The largest number of keys in a batch; `nil` for no limit.
  ///   - onFetch: What fetches the keys, each of them once, and returns a result for each; a key that it returns
  ///     nothing for fails with ``MultiplexerError/missingKey(_:)``. It is released with the map.
  /// - Returns: The map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, its timeouts are positive, the capacity and
  ///   the window are not negative, and a batch has room for one key.
  @inlinable
  @_disfavoredOverload
  public static func bulk(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    cacher: (any Cacher<Value>)?,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
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
      clock: clock,
      batching: BatchRules(window: window, maximumSize: maximumBatchSize),
      onFetch: { .results(try await onFetch($0)) }
    )
  }
}
