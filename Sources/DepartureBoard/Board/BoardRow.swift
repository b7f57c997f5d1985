/// One row of the board: a flight, what has become of it, and what is known about it.
struct BoardRow: Hashable, Identifiable, Sendable {
  /// What has become of a flight.
  enum Status: Hashable, Sendable {
    case onTime
    case delayed(until: ClockTime)
    case departed(at: ClockTime)
    case cancelled
  }

  /// How long a row stays on the board after its flight has left or should have, in minutes.
  static let afterglow = 10

  let flight: Flight
  var status = Status.onTime
  var details = RowDetails()
  /// When the row has last asked for its details; `nil` before the first time.
  var askedAt: Duration?
  /// Whether an answer is under way.
  var isAsking = false
  /// Whether the row has been reported with its fate.
  var isReported = false

  init(_ flight: Flight) {
    self.flight = flight
  }

  /// The identity of the flight.
  var id: Flight.ID {
    flight.id
  }

  /// When the flight leaves or has left, as far as is known; when it should have, if cancelled.
  var expected: ClockTime {
    switch status {
    case .onTime, .cancelled: flight.scheduled
    case .delayed(let time), .departed(let time): time
    }
  }

  /// Whether the flight has left or never will.
  var isDecided: Bool {
    switch status {
    case .onTime, .delayed: false
    case .departed, .cancelled: true
    }
  }
}
