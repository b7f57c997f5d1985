extension MultiplexerMap {
  /// Creates a map of what a closure fetches.
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors; its type if there is none.
  ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
  ///   - capacity: How much is kept in memory.
  ///   - tagging: Returns the tags of a key, by which values are cleared and refreshed together: always the
  ///     same for a key.
  ///   - clock: What measures the age of values, waits and timeouts.
  ///   - onKeyFetch: What fetches the value of a key. It is released with the map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, its timeouts are positive, and the
  ///   capacity is not negative.
  @inlinable
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    onKeyFetch: @escaping @concurrent @Sendable (Key) async throws -> Value
  ) {
    self.init(
      id: id,
      policy: policy,
      capacity: capacity,
      tagging: tagging,
      clock: clock,
      fetch: KeyedCache.fetch(onKeyFetch)
    )
  }

  /// Creates a map of what a closure fetches that is given the value it renews.
  ///
  /// The closure may ask the origin whether the value has changed at all, and may say how long the
  /// new one is fresh.
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors; its type if there is none.
  ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
  ///   - capacity: How much is kept in memory.
  ///   - tagging: Returns the tags of a key, by which values are cleared and refreshed together: always the
  ///     same for a key.
  ///   - clock: What measures the age of values, waits and timeouts.
  ///   - onKeyFetch: What fetches the value of a key. It is released with the map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, its timeouts are positive, and the
  ///   capacity is not negative.
  @inlinable
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    onKeyFetch:
      @escaping @concurrent @Sendable (Key, FetchContext<Value>) async throws -> FetchResult<Value>
  ) {
    self.init(
      id: id,
      policy: policy,
      capacity: capacity,
      tagging: tagging,
      clock: clock,
      fetch: KeyedCache.fetch(onKeyFetch)
    )
  }

  /// Creates a map of what a closure fetches, with stored copies under names of your own.
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
  ///   - onKeyFetch: What fetches the value of a key. It is released with the map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, its timeouts are positive, and the
  ///   capacity is not negative.
  @inlinable
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    cacher: (any Cacher<Value>)?,
    keyName: @escaping @Sendable (Key) -> String,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    onKeyFetch: @escaping @concurrent @Sendable (Key) async throws -> Value
  ) {
    self.init(
      id: id,
      policy: policy,
      capacity: capacity,
      cacher: cacher,
      text: { StoredNames.text(of: keyName($0)) },
      tagging: tagging,
      clock: clock,
      fetch: KeyedCache.fetch(onKeyFetch)
    )
  }

  /// Creates a map of what a closure fetches that is given the value it renews, with stored copies under names of your own.
  ///
  /// The closure may ask the origin whether the value has changed at all, and may say how long the
  /// new one is fresh.
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
  ///   - onKeyFetch: What fetches the value of a key. It is released with the map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, its timeouts are positive, and the
  ///   capacity is not negative.
  @inlinable
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    cacher: (any Cacher<Value>)?,
    keyName: @escaping @Sendable (Key) -> String,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    onKeyFetch:
      @escaping @concurrent @Sendable (Key, FetchContext<Value>) async throws -> FetchResult<Value>
  ) {
    self.init(
      id: id,
      policy: policy,
      capacity: capacity,
      cacher: cacher,
      text: { StoredNames.text(of: keyName($0)) },
      tagging: tagging,
      clock: clock,
      fetch: KeyedCache.fetch(onKeyFetch)
    )
  }
}

extension MultiplexerMap where Key: LosslessStringConvertible {
  /// Creates a map of what a closure fetches, with stored copies.
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
  ///   - onKeyFetch: What fetches the value of a key. It is released with the map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, its timeouts are positive, and the
  ///   capacity is not negative.
  @inlinable
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    cacher: (any Cacher<Value>)?,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    onKeyFetch: @escaping @concurrent @Sendable (Key) async throws -> Value
  ) {
    self.init(
      id: id,
      policy: policy,
      capacity: capacity,
      cacher: cacher,
      text: { StoredNames.text(of: $0) },
      tagging: tagging,
      clock: clock,
      fetch: KeyedCache.fetch(onKeyFetch)
    )
  }

  /// Creates a map of what a closure fetches that is given the value it renews, with stored copies.
  ///
  /// The closure may ask the origin whether the value has changed at all, and may say how long the
  /// new one is fresh.
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
  ///   - onKeyFetch: What fetches the value of a key. It is released with the map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, its timeouts are positive, and the
  ///   capacity is not negative.
  @inlinable
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    cacher: (any Cacher<Value>)?,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    onKeyFetch:
      @escaping @concurrent @Sendable (Key, FetchContext<Value>) async throws -> FetchResult<Value>
  ) {
    self.init(
      id: id,
      policy: policy,
      capacity: capacity,
      cacher: cacher,
      text: { StoredNames.text(of: $0) },
      tagging: tagging,
      clock: clock,
      fetch: KeyedCache.fetch(onKeyFetch)
    )
  }
}

extension MultiplexerMap {
  /// Creates a map; the text of a key is needed with a cacher only.
  @inlinable
  init(
    id: String?,
    policy: CachePolicy,
    capacity: CacheCapacity<Value>,
    cacher: (any Cacher<Value>)? = nil,
    text: @escaping @Sendable (Key) -> String = { "\($0)" },
    tagging: (@Sendable (Key) -> [CacheTag])?,
    clock: any Clock<Duration>,
    batching: BatchRules? = nil,
    bulkFetch: KeyedCache<Key, Value>.BulkFetch? = nil,
    fetch: @escaping CacheEngine.Operations.Fetch
  ) {
    let cache = KeyedCache<Key, Value>(
      id: id,
      type: MultiplexerMap<Key, Value>.self,
      namesKeys: true,
      policy: policy,
      capacity: capacity,
      storage: cacher.map {
        Storage(cacher: $0, id: id, policy: policy, clock: clock, text: text)
      },
      tagging: tagging,
      clock: clock,
      bulkFetch: bulkFetch,
      batching: batching,
      fetch: fetch
    )
    self.init(owner: CacheOwner(cache), ticket: .none)
  }

  /// Creates a map with a fetch for several keys.
  @inlinable
  init(
    id: String?,
    policy: CachePolicy,
    capacity: CacheCapacity<Value>,
    cacher: (any Cacher<Value>)? = nil,
    text: @escaping @Sendable (Key) -> String = { "\($0)" },
    tagging: (@Sendable (Key) -> [CacheTag])?,
    clock: any Clock<Duration>,
    batching: BatchRules,
    onFetch: @escaping KeyedCache<Key, Value>.BulkFetch
  ) {
    self.init(
      id: id,
      policy: policy,
      capacity: capacity,
      cacher: cacher,
      text: text,
      tagging: tagging,
      clock: clock,
      batching: batching,
      bulkFetch: onFetch,
      fetch: KeyedCache.fetch(together: onFetch)
    )
  }
}
