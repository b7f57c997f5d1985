internal import Synchronization

extension CacheEngine {
  /// The readers of events, and the flights, while a reader looks at them.
  struct Watchers: Sendable {
    /// The hub of the events, once there has been a listener.
    var events: BroadcastHub<CacheEvent>?
    /// The hub of the events with joins, once there has been a listener.
    var details: BroadcastHub<CacheEvent>?

    /// Whether there are listeners.
    var hasListeners: Bool {
      events?.hasSubscribers.load(ordering: .relaxed) == true
        || details?.hasSubscribers.load(ordering: .relaxed) == true
    }
    /// The flights in progress, while they are watched.
    var flights = WatchedFlightsState<Flight>()
  }

  /// Whether flights are watched from now on; the caller then enters the ones in progress.
  final func startWatching() -> Bool {
    watchers.withLock { watchers in
      let isNew = !watchesFlights.load(ordering: .relaxed)
      if isNew { watchesFlights.store(true, ordering: .sequentiallyConsistent) }
      watchers.flights.noteRead()
      return isNew
    }
  }

  /// Watches no flights from now on.
  final func stopWatching() {
    watchers.release { watchers in
      watchesFlights.store(false, ordering: .relaxed)
      return watchers.flights.removeAll()
    }
  }

  /// Enters flights that are about to be launched; called with no lock held.
  @usableFromInline
  @inline(never)
  final func watch(_ flights: [Flight]) {
    let now = time.now()
    var removed: [ObjectIdentifier: WatchedFlightsState<Flight>.Item] = [:]
    watchers.withLock { watchers in
      guard watchesFlights.load(ordering: .relaxed) else { return }
      for flight in flights { watchers.flights.insert(flight, since: now) }
      guard watchers.flights.isForgotten else { return }
      watchesFlights.store(false, ordering: .relaxed)
      removed = watchers.flights.removeAll()
    }
    withExtendedLifetime(removed) {}
  }

  /// Enters a flight that can have ended in the meantime.
  final func watch(_ flight: Flight, since start: Nanoseconds) {
    watchers.withLock { $0.flights.insert(flight, since: start) }
    // If it ends after this look, the thread that ends it takes it out.
    if flight.hasEnded { unwatch(flight) }
  }

  /// Takes out a flight that has ended; called with no lock held.
  @usableFromInline
  @inline(never)
  final func unwatch(_ flight: Flight) {
    watchers.release { $0.flights.remove(flight) }
  }

  /// The flights that are watched, and the times at which they began.
  final var watchedFlights: [WatchedFlightsState<Flight>.Item] {
    watchers.withLock { $0.flights.items }
  }
}
