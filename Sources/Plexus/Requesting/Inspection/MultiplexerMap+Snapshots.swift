extension MultiplexerMap {
  /// An entry of a map at one moment: see ``MultiplexerMap/entries(limit:where:)``.
  ///
  /// ## Topics
  ///
  /// ### The value
  /// - ``key``
  /// - ``value``
  /// - ``error``
  ///
  /// ### Its freshness
  /// - ``state``
  /// - ``isFresh``
  /// - ``age``
  /// - ``timeLeft``
  ///
  /// ### Its place in the map
  /// - ``tags``
  /// - ``cost``
  public struct EntrySnapshot: Sendable {
    /// The type of the state.
    public typealias State = CacheEntryState

    /// The key.
    public let key: Key
    /// The value in memory; `nil` if only a failure is remembered.
    public let value: Value?
    /// The state, as a request at that moment would have found it.
    public let state: State
    /// The error of the last fetch, if it has failed.
    public let error: (any Error)?
    /// The time since the value was fetched or stored; zero without a value.
    public let age: Duration
    /// The time until the value is stale or the failure is forgotten; `nil` if it is stale or never will be.
    public let timeLeft: Duration?
    /// The tags of the key and of the value.
    public let tags: [CacheTag]
    /// The cost of the value, 1 unless the capacity limits costs; 0 without a value.
    public let cost: Int

    @inlinable
    init(
      key: Key,
      value: Value?,
      state: State,
      error: (any Error)?,
      age: Duration,
      timeLeft: Duration?,
      tags: [CacheTag],
      cost: Int
    ) {
      self.key = key
      self.value = value
      self.state = state
      self.error = error
      self.age = age
      self.timeLeft = timeLeft
      self.tags = tags
      self.cost = cost
    }

    /// Whether the value answers requests without a fetch.
    public var isFresh: Bool { state == .fresh }
  }

  /// A fetch in flight: see ``MultiplexerMap/flights(limit:)``.
  ///
  /// ## Topics
  ///
  /// ### Details
  /// - ``key``
  /// - ``age``
  /// - ``callerCount``
  /// - ``isWaiting``
  public struct FlightSnapshot: Sendable {
    /// The key.
    public let key: Key
    /// The time since the fetch was requested; before the first call of ``MultiplexerMap/flights(limit:)``, since the
    /// latest attempt began.
    public let age: Duration
    /// The number of callers that wait for the value.
    public let callerCount: Int
    /// Whether the fetch has not begun: it waits for a place, for its batch, or for the stored copy.
    public let isWaiting: Bool

    init(_ copy: KeyedCache<Key, Value>.FlightCopy) {
      key = copy.key
      age = copy.age
      callerCount = copy.callerCount
      isWaiting = copy.isWaiting
    }
  }

  /// Returns entries of the map as they are at one moment, for example for a page of diagnostics.
  ///
  /// The entries have a value or a remembered failure. Reading them starts no fetch, is not counted in the statistics,
  /// and counts as no use: it changes neither which values are evicted nor when one is idle.
  ///
  /// The call takes all locks of the map for about a microsecond, in which it only references the arrays of entries.
  /// It then looks at the entries in turn until it has found enough, which takes time proportional to their number if the
  /// condition includes few of them. Meanwhile, the first change of each of up to 16 parts of the map copies the entries
  /// of that part, which delays the task that makes the change: by about a millisecond in a map of a million keys.
  ///
  /// ```swift
  /// let names = MultiplexerMap<Int, String> { id in "user \(id)" }
  /// _ = try await names.request(7)
  ///
  /// for entry in names.entries(limit: 100, where: { $0 < 10 }) {
  ///   print(entry.key, entry.state)  // Prints "7 fresh"
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - limit: The maximum number of entries.
  ///   - isIncluded: The condition on the keys, which is called with no lock held and can use the map.
  /// - Returns: The entries, in no particular order.
  /// - Precondition: The limit is not negative.
  @inlinable
  public nonisolated func entries(
    limit: Int,
    where isIncluded: (Key) -> Bool = { _ in true }
  ) -> [EntrySnapshot] {
    precondition(limit >= 0, "The number of entries of a snapshot cannot be negative")
    return cache.entries(limit: limit, where: isIncluded)
  }

  /// Returns the fetches in flight, the longest first.
  ///
  /// A fetch belongs to the list until it ends, even if its value is not stored because its key was cleared or got another
  /// value meanwhile.
  ///
  /// The first call looks at all entries, and misses fetches whose key was cleared or stored since they began. From then
  /// on, every fetch enters a list, at the cost of a lock at its beginning and one at its end, until a call with a limit of
  /// 0, or until a million fetches have begun without another call.
  ///
  /// - Parameter limit: The maximum number of fetches.
  /// - Returns: The fetches. The numbers of their callers are read one after another.
  /// - Precondition: The limit is not negative.
  public nonisolated func flights(limit: Int) -> [FlightSnapshot] {
    precondition(limit >= 0, "The number of fetches of a snapshot cannot be negative")
    return cache.flightCopies(limit: limit).map { FlightSnapshot($0) }
  }

  /// Returns a stream of the events of the map from now on, including the joins of each fetch.
  ///
  /// It has the events of ``MultiplexerMap/events(bufferingPolicy:)``, in the same order, and
  /// ``CacheEvent/joined(key:count:)``.
  ///
  /// - Parameter bufferingPolicy: The policy for events that the reader has not read yet.
  /// - Returns: The stream. It ends when it is dropped, when the task that iterates it is cancelled, or when the map is
  ///   released.
  public nonisolated func detailedEvents(
    bufferingPolicy: BufferingPolicy<CacheEvent> = .unbounded
  ) -> AsyncStream<CacheEvent> {
    cache.subscribe(bufferingPolicy: bufferingPolicy, hasJoins: true)
  }
}
