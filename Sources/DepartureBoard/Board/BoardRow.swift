/// One row of the board: a flight with its status and its details.
struct BoardRow: Hashable, Identifiable, Sendable {
  /// The status of a flight.
  enum Status: Hashable, Sendable {
    case onTime
    case delayed(until: ClockTime)
    case departed(at: ClockTime)
    case cancelled
  }

  /// The number of minutes for which a row stays on the board after its flight has left or should have left.
  static let afterglow = 10

  let flight: Flight
  var status = Status.onTime
  var details = RowDetails()
  /// The time of the last lookup; `nil` before the first.
  var askedAt: Duration?
  /// Whether a lookup is in flight.
  var isAsking = false
  /// Whether the final status of the row has been reported.
  var isReported = false
  /// Whether the status was announced by another board first.
  var isHeard = false

  init(_ flight: Flight) {
    self.flight = flight
  }

  /// The id of the flight.
  var id: Flight.ID {
    flight.id
  }

  /// The actual or expected departure, or the scheduled one of a cancelled flight.
  var expected: ClockTime {
    switch status {
    case .onTime, .cancelled: flight.scheduled
    case .delayed(let time), .departed(let time): time
    }
  }

  /// Whether the flight has left or is cancelled.
  var isDecided: Bool {
    switch status {
    case .onTime, .delayed: false
    case .departed, .cancelled: true
    }
  }
}
