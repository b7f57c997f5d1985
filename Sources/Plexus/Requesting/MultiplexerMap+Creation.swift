extension MultiplexerMap {
  /// Creates a map of what a closure fetches.
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors; its type if there is none.
  ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
  ///   - capacity: How much is kept in memory.
  ///   - clock: What measures the age of values, waits and timeouts.
  ///   - onKeyFetch: What fetches the value of a key. It is released with the map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, its timeouts are positive, and the
  ///   capacity is not negative.
  @inlinable
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    clock: any Clock<Duration> = ContinuousClock(),
    onKeyFetch: @escaping @concurrent @Sendable (Key) async throws -> Value
  ) {
    let cache = KeyedCache<Key, Value>(
      id: id,
      type: MultiplexerMap<Key, Value>.self,
      namesKeys: true,
      policy: policy,
      capacity: capacity,
      clock: clock,
      fetch: KeyedCache.fetch(onKeyFetch)
    )
    self.init(owner: CacheOwner(cache), ticket: .none)
  }

  /// Creates a map of what a closure fetches that knows of the value it renews.
  ///
  /// The closure may ask the origin whether the value has changed at all, and may say how long the
  /// new one is fresh.
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors; its type if there is none.
  ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
  ///   - capacity: How much is kept in memory.
  ///   - clock: What measures the age of values, waits and timeouts.
  ///   - onKeyFetch: What fetches the value of a key. It is released with the map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, its timeouts are positive, and the
  ///   capacity is not negative.
  @inlinable
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    clock: any Clock<Duration> = ContinuousClock(),
    onKeyFetch:
      @escaping @concurrent @Sendable (Key, FetchContext<Value>) async throws -> FetchResult<Value>
  ) {
    let cache = KeyedCache<Key, Value>(
      id: id,
      type: MultiplexerMap<Key, Value>.self,
      namesKeys: true,
      policy: policy,
      capacity: capacity,
      clock: clock,
      fetch: KeyedCache.fetch(onKeyFetch)
    )
    self.init(owner: CacheOwner(cache), ticket: .none)
  }

  /// Creates a map of what a closure fetches for several keys at once.
  ///
  /// ``request(_:)->[Key:Result<Value,Error>]`` fetches all that is missing with one call; a request of a
  /// single key calls it with that key alone, or joins a call that fetches the key already.
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors; its type if there is none.
  ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
  ///   - capacity: How much is kept in memory.
  ///   - clock: What measures the age of values, waits and timeouts.
  ///   - onFetch: What fetches the values of keys, each of them once; a key that it returns nothing for
  ///     fails with ``MultiplexerError/missingKey(_:)``. It is released with the map.
  /// - Returns: The map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, its timeouts are positive, and the
  ///   capacity is not negative.
  @inlinable
  public static func bulk(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    clock: any Clock<Duration> = ContinuousClock(),
    onFetch: @escaping @concurrent @Sendable ([Key]) async throws -> [Key: Value]
  ) -> MultiplexerMap {
    let cache = KeyedCache<Key, Value>(
      id: id,
      type: MultiplexerMap<Key, Value>.self,
      namesKeys: true,
      policy: policy,
      capacity: capacity,
      clock: clock,
      bulkFetch: onFetch,
      fetch: KeyedCache.fetch(together: onFetch)
    )
    return MultiplexerMap(owner: CacheOwner(cache), ticket: .none)
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
    clock: any Clock<Duration> = ContinuousClock(),
    onKeyFetch: @escaping @concurrent @Sendable (Key) async throws -> Value
  ) {
    let cache = KeyedCache<Key, Value>(
      id: id,
      type: MultiplexerMap<Key, Value>.self,
      namesKeys: true,
      policy: policy,
      capacity: capacity,
      storage: cacher.map {
        Storage(cacher: $0, id: id, policy: policy, clock: clock) { StoredNames.text(of: $0) }
      },
      clock: clock,
      fetch: KeyedCache.fetch(onKeyFetch)
    )
    self.init(owner: CacheOwner(cache), ticket: .none)
  }

  /// Creates a map of what a closure fetches that knows of the value it renews, with stored copies.
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
    clock: any Clock<Duration> = ContinuousClock(),
    onKeyFetch:
      @escaping @concurrent @Sendable (Key, FetchContext<Value>) async throws -> FetchResult<Value>
  ) {
    let cache = KeyedCache<Key, Value>(
      id: id,
      type: MultiplexerMap<Key, Value>.self,
      namesKeys: true,
      policy: policy,
      capacity: capacity,
      storage: cacher.map {
        Storage(cacher: $0, id: id, policy: policy, clock: clock) { StoredNames.text(of: $0) }
      },
      clock: clock,
      fetch: KeyedCache.fetch(onKeyFetch)
    )
    self.init(owner: CacheOwner(cache), ticket: .none)
  }

  /// Creates a map of what a closure fetches for several keys at once, with stored copies.
  ///
  /// ``request(_:)->[Key:Result<Value,Error>]`` fetches all that is missing with one call; a request of a
  /// single key calls it with that key alone, or joins a call that fetches the key already.
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors, and the namespace of its entries in the cacher. A map
  ///     without one appears by its type, shares its entries with others like it, and clears the whole cacher.
  ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
  ///   - capacity: How much is kept in memory.
  ///   - cacher: Persistent storage for the values, if any. Their keys there are made of the id and the
  ///     description of each key.
  ///   - clock: What measures the age of values, waits and timeouts.
  ///   - onFetch: What fetches the values of keys, each of them once; a key that it returns nothing for
  ///     fails with ``MultiplexerError/missingKey(_:)``. It is released with the map.
  /// - Returns: The map.
  /// - Precondition: The policy's expiry jitter lies between 0 and 1, its timeouts are positive, and the
  ///   capacity is not negative.
  @inlinable
  public static func bulk(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    cacher: (any Cacher<Value>)?,
    clock: any Clock<Duration> = ContinuousClock(),
    onFetch: @escaping @concurrent @Sendable ([Key]) async throws -> [Key: Value]
  ) -> MultiplexerMap {
    let cache = KeyedCache<Key, Value>(
      id: id,
      type: MultiplexerMap<Key, Value>.self,
      namesKeys: true,
      policy: policy,
      capacity: capacity,
      storage: cacher.map {
        Storage(cacher: $0, id: id, policy: policy, clock: clock) { StoredNames.text(of: $0) }
      },
      clock: clock,
      bulkFetch: onFetch,
      fetch: KeyedCache.fetch(together: onFetch)
    )
    return MultiplexerMap(owner: CacheOwner(cache), ticket: .none)
  }
}
