extension MultiplexerMap {
  /// Creates a map.
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
  ///   - onKeyFetch: A closure that fetches the value of a key. It is released with the map.
  /// - Precondition: The policy's expiry jitter is between 0 and 1, its timeouts are positive, and the capacity is
  ///   not negative.
  @inlinable
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    valueTagging: (@Sendable (Key, Value) -> [CacheTag])? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    onKeyFetch: @escaping @concurrent @Sendable (Key) async throws -> Value
  ) {
    self.init(
      id: id,
      policy: policy,
      capacity: capacity,
      tagging: tagging,
      valueTagging: valueTagging,
      clock: clock,
      fetch: KeyedCache.fetch(onKeyFetch)
    )
  }

  /// Creates a map whose fetch receives the previous value.
  ///
  /// The closure can ask the origin whether the value has changed, and can return a time to live for each value.
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
  ///   - onKeyFetch: A closure that fetches the value of a key. It is released with the map.
  /// - Precondition: The policy's expiry jitter is between 0 and 1, its timeouts are positive, and the capacity is
  ///   not negative.
  @inlinable
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    valueTagging: (@Sendable (Key, Value) -> [CacheTag])? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    onKeyFetch:
      @escaping @concurrent @Sendable (Key, FetchContext<Value>) async throws -> FetchResult<Value>
  ) {
    self.init(
      id: id,
      policy: policy,
      capacity: capacity,
      tagging: tagging,
      valueTagging: valueTagging,
      clock: clock,
      fetch: KeyedCache.fetch(onKeyFetch)
    )
  }

  /// Creates a map that stores copies under your names.
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
  ///   - onKeyFetch: A closure that fetches the value of a key. It is released with the map.
  /// - Precondition: The policy's expiry jitter is between 0 and 1, its timeouts are positive, and the capacity is
  ///   not negative.
  @inlinable
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    cacher: (any Cacher<Value>)?,
    keyName: @escaping @Sendable (Key) -> String,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    valueTagging: (@Sendable (Key, Value) -> [CacheTag])? = nil,
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
      valueTagging: valueTagging,
      clock: clock,
      fetch: KeyedCache.fetch(onKeyFetch)
    )
  }

  /// Creates a map whose fetch receives the previous value, and which stores copies under your names.
  ///
  /// The closure can ask the origin whether the value has changed, and can return a time to live for each value.
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
  ///   - onKeyFetch: A closure that fetches the value of a key. It is released with the map.
  /// - Precondition: The policy's expiry jitter is between 0 and 1, its timeouts are positive, and the capacity is
  ///   not negative.
  @inlinable
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    cacher: (any Cacher<Value>)?,
    keyName: @escaping @Sendable (Key) -> String,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    valueTagging: (@Sendable (Key, Value) -> [CacheTag])? = nil,
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
      valueTagging: valueTagging,
      clock: clock,
      fetch: KeyedCache.fetch(onKeyFetch)
    )
  }
}

extension MultiplexerMap where Key: LosslessStringConvertible {
  /// Creates a map that stores copies.
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
  ///   - onKeyFetch: A closure that fetches the value of a key. It is released with the map.
  /// - Precondition: The policy's expiry jitter is between 0 and 1, its timeouts are positive, and the capacity is
  ///   not negative.
  @inlinable
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    cacher: (any Cacher<Value>)?,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    valueTagging: (@Sendable (Key, Value) -> [CacheTag])? = nil,
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
      valueTagging: valueTagging,
      clock: clock,
      fetch: KeyedCache.fetch(onKeyFetch)
    )
  }

  /// Creates a map whose fetch receives the previous value, and which stores copies.
  ///
  /// The closure can ask the origin whether the value has changed, and can return a time to live for each value.
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
  ///   - onKeyFetch: A closure that fetches the value of a key. It is released with the map.
  /// - Precondition: The policy's expiry jitter is between 0 and 1, its timeouts are positive, and the capacity is
  ///   not negative.
  @inlinable
  public init(
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Value> = .unbounded,
    cacher: (any Cacher<Value>)?,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    valueTagging: (@Sendable (Key, Value) -> [CacheTag])? = nil,
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
      valueTagging: valueTagging,
      clock: clock,
      fetch: KeyedCache.fetch(onKeyFetch)
    )
  }
}

extension MultiplexerMap {
  /// Creates a map; the text of keys is needed only with a cacher.
  @inlinable
  init(
    id: String?,
    policy: CachePolicy,
    capacity: CacheCapacity<Value>,
    cacher: (any Cacher<Value>)? = nil,
    text: @escaping @Sendable (Key) -> String = { "\($0)" },
    tagging: (@Sendable (Key) -> [CacheTag])?,
    valueTagging: (@Sendable (Key, Value) -> [CacheTag])?,
    clock: any Clock<Duration>,
    batching: BatchWindow.Rules? = nil,
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
        StoredLayer(cacher: $0, id: id, policy: policy, clock: clock, text: text)
      },
      tagging: tagging,
      valueTagging: valueTagging,
      clock: clock,
      bulkFetch: bulkFetch,
      batching: batching,
      fetch: fetch
    )
    self.init(owner: CacheOwner(cache), ticket: .none)
  }

  /// Creates a map with a fetch of several keys.
  @inlinable
  init(
    id: String?,
    policy: CachePolicy,
    capacity: CacheCapacity<Value>,
    cacher: (any Cacher<Value>)? = nil,
    text: @escaping @Sendable (Key) -> String = { "\($0)" },
    tagging: (@Sendable (Key) -> [CacheTag])?,
    valueTagging: (@Sendable (Key, Value) -> [CacheTag])?,
    clock: any Clock<Duration>,
    batching: BatchWindow.Rules,
    onFetch: @escaping KeyedCache<Key, Value>.BulkFetch
  ) {
    self.init(
      id: id,
      policy: policy,
      capacity: capacity,
      cacher: cacher,
      text: text,
      tagging: tagging,
      valueTagging: valueTagging,
      clock: clock,
      batching: batching,
      bulkFetch: onFetch,
      fetch: KeyedCache.fetch(together: onFetch)
    )
  }
}
