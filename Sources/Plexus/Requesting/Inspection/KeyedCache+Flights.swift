extension KeyedCache {
  /// A flight at one moment.
  struct FlightCopy: Sendable {
    let key: Key
    let age: Duration
    let callerCount: Int
    let isWaiting: Bool
  }

  /// Returns the flights in progress, the longest first.
  ///
  /// The first call looks for them among all entries. From then on they are entered in a list when they are launched.
  ///
  /// - Parameter limit: The maximum number of flights; with 0, the list is no longer kept.
  /// - Returns: The flights.
  func flightCopies(limit: Int) -> [FlightCopy] {
    guard limit > 0 else {
      stopWatching()
      return []
    }
    if startWatching() { watchRunning() }
    let now = time.now()
    // One that has ended can be about to be taken out.
    let flights = watchedFlights.filter { !$0.flight.hasEnded }
    return flights.sorted { $0.start < $1.start }.prefix(limit).map { item in
      FlightCopy(
        key: key(of: item.flight),
        age: .nanoseconds(age(of: item.start, at: now)),
        callerCount: item.flight.callerCount,
        isWaiting: !(item.flight.batch ?? item.flight).hasBegun
      )
    }
  }

  /// Enters the flights that were launched before they were watched.
  private func watchRunning() {
    let now = time.now()
    var moments = moments
    while let moment = moments.popLast() {
      for index in moment.entries.indices {
        guard let flight = moment.entries[index].element.state.running else { continue }
        watch(flight, since: (flight.batch ?? flight).attemptTime ?? flight.attemptTime ?? now)
      }
    }
  }
}
