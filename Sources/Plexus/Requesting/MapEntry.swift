extension MultiplexerMap {
  /// One key of a map: it can be requested, followed and changed like a ``Multiplexer``.
  ///
  /// ```swift
  /// let names = MultiplexerMap<Int, String> { id in "user \(id)" }
  /// let ada = names[7]
  /// let token = ada.observe { state in print(state.value ?? "?") }
  /// let name = try await ada.request()
  /// ada.store("Ada")
  /// print(name, ada.cachedValue ?? "?")  // user 7 Ada
  /// ```
  ///
  /// An entry keeps the map alive. It is a value: two entries of one key are the same to the map.
  ///
  /// ## Topics
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
  /// ### Following
  /// - ``current``
  /// - ``subscribe(bufferingPolicy:)``
  /// - ``subscribe(refetching:bufferingPolicy:)``
  /// - ``subscription(bufferingPolicy:)``
  /// - ``subscription(refetching:bufferingPolicy:)``
  /// - ``subscriberCount``
  public struct Entry: StatefulBroadcaster, Requestable {
    /// The type of the elements: the states of the value.
    public typealias Element = LoadState<Value>

    /// The key.
    public let key: Key

    @usableFromInline let owner: CacheOwner<Key, Value>
    @usableFromInline let hash: UInt64
    /// The refresh that requests through this entry insist on.
    @usableFromInline let ticket: RefreshTicket
    /// Returns the value if it is fresh; compiled for the types of the client.
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

    /// Returns the value: at once if it is fresh, else after the one fetch that all callers share.
    ///
    /// - Returns: The value.
    /// - Throws: As ``MultiplexerMap/request(_:)->Value``.
    @inlinable
    public func request() async throws -> Value {
      if let value = cache.hit(key, hash: hash, ticket: ticket) { return value }
      return try await cache.settle(key, hash: hash, ticket: ticket).value
    }

    /// Returns the value in memory if it is fresh, and counts it as a hit.
    ///
    /// - Returns: The value; `nil` if ``request()`` would fetch it or wait for it.
    @inlinable
    public func requestImmediately() -> Value? {
      hit()
    }

    /// Returns the value, where it comes from and how old it is.
    ///
    /// - Returns: The value, and what is known of it.
    /// - Throws: As ``request()``.
    @inlinable
    public func response() async throws -> Response<Value> {
      try await cache.response(key, hash: hash, ticket: ticket)
    }

    /// The value in memory, fresh or stale; it is `nil` if there is none.
    ///
    /// Reading it fetches nothing and does not count in the statistics.
    @inlinable public var cachedValue: Value? {
      cache.value(of: key, hash: hash)
    }

    /// Brings a value, as fresh as one that was just fetched.
    ///
    /// What follows is described at ``MultiplexerMap/store(_:for:)``.
    ///
    /// - Parameter value: The value.
    @inlinable
    public func store(_ value: Value) {
      cache.store(value, for: key, hash: hash)
    }

    /// Says that the value has changed at its origin.
    ///
    /// What follows is described at ``Multiplexer/refresh()``.
    ///
    /// - Returns: The same entry, whose requests are answered with what was fetched or stored after this call
    ///   only.
    @inlinable
    @discardableResult
    public func refresh() -> Self {
      Self(owner: owner, key: key, hash: hash, ticket: cache.refresh(key, hash: hash))
    }

    /// Forgets the value, as ``MultiplexerMap/clear(_:)-(Key)`` does.
    ///
    /// - Throws: A ``CacherError`` if the stored copy may still be there.
    @inlinable
    public func clear() async throws {
      try await cache.clear(key, hash: hash)
    }

    /// The state of the value at this moment.
    ///
    /// Reading it fetches nothing and does not count in the statistics.
    @inlinable public var current: LoadState<Value> {
      cache.loadState(of: key, hash: hash)
    }

    /// Registers a subscriber and returns the current state of the value and those that follow.
    ///
    /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
    /// - Returns: The stream. Dropping it or cancelling its task ends the subscription.
    public func subscribe(
      bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
    ) -> AsyncStream<LoadState<Value>> {
      AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
    }

    /// Registers a subscriber and returns the current state of the value and those that follow.
    ///
    /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
    /// - Returns: The subscription, which ends when it is dropped or its task is cancelled.
    @inlinable
    public func subscription(
      bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
    ) -> Subscription<LoadState<Value>> {
      cache.withHub(of: key, hash: hash) { hub, replay in
        hub.subscription(bufferingPolicy: bufferingPolicy, replaying: replay)
      }
    }

    /// The number of subscribers of the key at this moment, streams and handlers alike.
    public var subscriberCount: Int {
      cache.subscriberCount(of: key, hash: hash)
    }
  }
}

extension MultiplexerMap.Entry: HubBacked {
  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<LoadState<Value>>, _ replay: [LoadState<Value>]) -> Result
  ) -> Result {
    cache.withHub(of: key, hash: hash, body)
  }
}
