extension Multiplexer {
  /// The content of a multiplexer at one moment: see ``Multiplexer/entry``.
  ///
  /// ## Topics
  ///
  /// ### The value
  /// - ``value``
  /// - ``error``
  ///
  /// ### Its freshness
  /// - ``state``
  /// - ``isFresh``
  /// - ``age``
  /// - ``timeLeft``
  public struct EntrySnapshot: Sendable {
    /// The type of the state.
    public typealias State = CacheEntryState

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

    /// Whether the value answers requests without a fetch.
    public var isFresh: Bool { state == .fresh }
  }

  /// The fetch in flight: see ``Multiplexer/flight``.
  ///
  /// ## Topics
  ///
  /// ### Details
  /// - ``age``
  /// - ``callerCount``
  /// - ``isWaiting``
  public struct FlightSnapshot: Sendable {
    /// The time since the fetch was requested; before the first look at ``Multiplexer/flight``, since the latest attempt
    /// began.
    public let age: Duration
    /// The number of callers that wait for the value.
    public let callerCount: Int
    /// Whether the fetch has not begun: it waits for a place or for the stored copy.
    public let isWaiting: Bool
  }

  /// The value in memory with its state, or the remembered failure, if there is one of them.
  ///
  /// Reading it starts no fetch, is not counted in the statistics, and counts as no use of the value.
  public nonisolated var entry: EntrySnapshot? {
    cache.entries(limit: 1) { _ in true }.first.map { copy in
      EntrySnapshot(
        value: copy.value,
        state: copy.state,
        error: copy.error,
        age: copy.age,
        timeLeft: copy.timeLeft
      )
    }
  }

  /// The fetch in flight, if there is one; of several, the one that takes longest.
  public nonisolated var flight: FlightSnapshot? {
    cache.flightCopies(limit: 1).first.map { copy in
      FlightSnapshot(age: copy.age, callerCount: copy.callerCount, isWaiting: copy.isWaiting)
    }
  }

  /// Keeps no list of fetches until ``flight`` is read again.
  package nonisolated func endFlights() {
    cache.stopWatching()
  }

  /// Returns a stream of the events of the multiplexer from now on, including the joins of each fetch.
  ///
  /// It has the events of ``Multiplexer/events(bufferingPolicy:)``, in the same order, and
  /// ``CacheEvent/joined(key:count:)``.
  ///
  /// - Parameter bufferingPolicy: The policy for events that the reader has not read yet.
  /// - Returns: The stream. It ends when it is dropped, when the task that iterates it is cancelled, or when the multiplexer is
  ///   released.
  public nonisolated func detailedEvents(
    bufferingPolicy: BufferingPolicy<CacheEvent> = .unbounded
  ) -> AsyncStream<CacheEvent> {
    cache.subscribe(bufferingPolicy: bufferingPolicy, hasJoins: true)
  }
}
