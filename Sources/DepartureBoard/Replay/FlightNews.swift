import Plexus

/// A change of a flight as one board publishes it to the others.
///
/// Every board has the timetable, so that the number of the flight is enough.
struct FlightNews: Event, Codable, Hashable {
  /// The new status of a flight; times are minutes since midnight.
  enum Status: Codable, Hashable {
    case scheduled
    case delayed(until: Int)
    case departed(at: Int)
    case cancelled
  }

  /// The name of the board, which no other board has.
  let board: String
  let flight: Flight.ID
  let status: Status
}

extension FlightNews {
  /// The times of a day whose flights leave until the next evening.
  private static let times = -24 * 60..<48 * 60

  init(_ change: FlightChange, by board: String) {
    self.board = board
    switch change {
    case .scheduled(let flight): (self.flight, status) = (flight.id, .scheduled)
    case .delayed(let id, let time): (flight, status) = (id, .delayed(until: time.minutes))
    case .departed(let id, let time): (flight, status) = (id, .departed(at: time.minutes))
    case .cancelled(let id): (flight, status) = (id, .cancelled)
    }
  }

  /// Returns the change, which another program can have written.
  ///
  /// - Parameter flights: The timetable.
  /// - Returns: The change, or `nil` if its flight or time is not of this day.
  func heard(_ flights: [Flight]) -> HeardChange? {
    guard flights.indices.contains(flight) else { return nil }
    let flight = flights[flight]
    let change: FlightChange
    switch status {
    case .scheduled: change = .scheduled(flight)
    case .cancelled: change = .cancelled(flight.id)
    case .delayed(let minutes):
      guard Self.times.contains(minutes) else { return nil }
      change = .delayed(flight.id, until: ClockTime(minutes: minutes))
    case .departed(let minutes):
      guard Self.times.contains(minutes) else { return nil }
      change = .departed(flight.id, at: ClockTime(minutes: minutes))
    }
    return HeardChange(change: change, flight: flight)
  }
}
