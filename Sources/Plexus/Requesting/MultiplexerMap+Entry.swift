extension MultiplexerMap {
  /// One key of a map, with the methods of a ``Multiplexer``.
  ///
  /// ```swift
  /// let names = MultiplexerMap<Int, String> { id in "user \(id)" }
  /// let ada = names[7]
  /// let name = try await ada.request()
  /// ada.store("Ada")
  /// print(name, ada.cachedValue ?? "?")  // Prints "user 7 Ada"
  /// ```
  ///
  /// An entry keeps the map alive. It is a value: all entries of a key are equivalent.
  ///
  /// ## Topics
  ///
  /// ### Reading the key
  /// - ``key``
  ///
  /// ### Requesting
  /// - ``request()``
  /// - ``response()``
  /// - ``requestImmediately()``
  /// - ``cachedValue``
  ///
  /// ### Changing
  /// - ``store(_:)``
  /// - ``update(_:)``
  /// - ``update(optimistically:commit:)``
  /// - ``refresh()``
  /// - ``prefetch()``
  /// - ``clear()``
  /// - ``clearMemory()``
  ///
  /// ### Subscribing
  /// - ``current``
  /// - ``subscribe(bufferingPolicy:)``
  /// - ``subscribe(refetching:bufferingPolicy:)``
  /// - ``subscription(bufferingPolicy:)``
  /// - ``subscription(refetching:bufferingPolicy:)``
  /// - ``subscriberCount``
  public struct Entry: StatefulBroadcaster, Requestable {
    /// The type of the elements, which are the loading states of the value.
    public typealias Element = LoadState<Value>

    /// The key.
    public let key: Key

    @usableFromInline let owner: CacheOwner<Key, Value>
    @usableFromInline let hash: UInt64
    /// The refresh that requests through this entry must satisfy.
    @usableFromInline let ticket: RefreshTicket
    /// Returns the value if it is fresh; specialized in the client.
    @usableFromInline let hit: @Sendable () -> Value?

    @inlinable
    init(owner: CacheOwner<Key, Value>, key: Key, hash: UInt64, ticket: RefreshTicket) {
      let cache = owner.cache
      self.owner = owner
      self.key = key
      self.hash = hash
      self.ticket = ticket
      hit = { cache.hit(key, hash: hash, ticket: ticket) }
    }

    @inlinable var cache: KeyedCache<Key, Value> { owner.cache }

    /// Returns the value: immediately if it is fresh, otherwise after a fetch that all callers share.
    ///
    /// - Returns: The value.
    /// - Throws: The same errors as ``MultiplexerMap/request(_:)->Value``.
    @inlinable
    public func request() async throws -> Value {
      if let value = cache.hit(key, hash: hash, ticket: ticket) { return value }
      return try await cache.request(key, hash: hash, ticket: ticket).value
    }

    /// Returns the value in memory if it is fresh, and counts it as a hit.
    ///
    /// - Returns: The value; `nil` if it is missing or stale, or due for a renewal by ``CachePolicy/refreshAhead``.
    @inlinable
    public func requestImmediately() -> Value? {
      hit()
    }

    /// Returns the value with its source and its age.
    ///
    /// - Returns: The response.
    /// - Throws: The same errors as ``request()``.
    @inlinable
    public func response() async throws -> Response<Value> {
      try await cache.response(key, hash: hash, ticket: ticket)
    }

    /// The value in memory, fresh or stale, if any.
    ///
    /// Reading it starts no fetch, and is not counted in the statistics.
    @inlinable public var cachedValue: Value? {
      cache.value(of: key, hash: hash)
    }

    /// Stores a value, which is as fresh as one that was just fetched.
    ///
    /// For details, see ``MultiplexerMap/store(_:for:)``.
    ///
    /// - Parameter value: The value.
    @inlinable
    public func store(_ value: Value) {
      cache.store(value, for: key, hash: hash)
    }

    /// Marks the value as changed at its origin.
    ///
    /// For details, see ``Multiplexer/refresh()``.
    ///
    /// - Returns: The same entry. Its requests are answered only with values that were fetched or stored after this
    ///   call, unless the fetch fails and the policy permits the old value.
    @inlinable
    @discardableResult
    public func refresh() -> Self {
      Self(owner: owner, key: key, hash: hash, ticket: cache.refresh(key, hash: hash))
    }

    /// Removes the value from memory and storage.
    ///
    /// For details, see ``MultiplexerMap/clear(_:)-(Key)``.
    ///
    /// - Throws: A ``CacherError`` if the stored copy may still exist.
    public func clear() async throws {
      try await cache.clear(key, hash: hash)
    }

    /// The current loading state of the value.
    ///
    /// Reading it starts no fetch, and is not counted in the statistics.
    public var current: LoadState<Value> {
      cache.loadState(of: key, hash: hash)
    }

    /// Registers a subscriber, which receives the current state of the value and then every change.
    ///
    /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
    /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
    public func subscribe(
      bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
    ) -> AsyncStream<LoadState<Value>> {
      AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
    }

    /// Registers a subscriber, which receives the current state of the value and then every change.
    ///
    /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
    /// - Returns: The subscription, which ends when it is dropped or the task that iterates it is cancelled.
    @inlinable
    public func subscription(
      bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
    ) -> Subscription<LoadState<Value>> {
      cache.withHub(of: key, hash: hash) { hub, replay in
        hub.subscription(bufferingPolicy: bufferingPolicy, replaying: replay)
      }
    }

    /// The current number of subscribers of the key, including streams and handlers.
    public var subscriberCount: Int {
      cache.subscriberCount(of: key, hash: hash)
    }
  }
}

extension MultiplexerMap.Entry: HubBacked {
  var presentHub: BroadcastHub<LoadState<Value>>? { cache.presentHub(of: key, hash: hash) }

  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<LoadState<Value>>, _ replay: [LoadState<Value>]) -> Result
  ) -> Result {
    cache.withHub(of: key, hash: hash, body)
  }
}

extension MultiplexerMap.Entry: JointPart {
  func place(in draft: inout JointPlan.Draft) -> Int {
    let id = Identity(map: ObjectIdentifier(cache), key: key)
    return draft.place(JointSource(source: self), id: id).step
  }

  /// The identity of a key of a map.
  private struct Identity: Hashable {
    let map: ObjectIdentifier
    let key: Key
  }
}
