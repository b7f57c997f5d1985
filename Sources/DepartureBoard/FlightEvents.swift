import Plexus

/// An event that announces a change of a flight.
struct FlightChange: Event, Codable, Hashable {
  /// The status of a flight.
  enum Status: Codable, Hashable, Sendable {
    case scheduled
    /// The flight did not leave on time and is expected at a later time.
    case delayed(until: ClockTime)
    case departed(at: ClockTime)
    case cancelled

    /// The actual or expected departure, if it is not the scheduled one.
    var time: ClockTime? {
      switch self {
      case .scheduled, .cancelled: nil
      case .delayed(let time), .departed(let time): time
      }
    }

    /// Whether the flight has left or is cancelled.
    var isFinal: Bool {
      switch self {
      case .scheduled, .delayed: false
      case .departed, .cancelled: true
      }
    }
  }

  let flight: Flight.ID
  let status: Status
}

/// An event that announces a change to all boards that share a server.
struct SharedChange: Event, Codable, Hashable {
  /// The name of the board that has announced it, which no other board has.
  let board: String
  let change: FlightChange
}

/// An event for a change of the origin's availability.
struct OriginChange: Event, Hashable {
  let isOnline: Bool
}

/// An event that follows all other events up to a moment.
struct MomentReached: Event, Hashable {
  let moment: ClockTime
}
