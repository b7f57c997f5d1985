import Plexus

/// An event that announces a change of a flight.
enum FlightChange: Event, Hashable {
  /// The flight is scheduled.
  case scheduled(Flight)
  /// The flight did not leave on time and is expected at a later time.
  case delayed(Flight.ID, until: ClockTime)
  case departed(Flight.ID, at: ClockTime)
  case cancelled(Flight.ID)
}

/// An event for a change of a flight that another board has announced.
struct HeardChange: Event, Hashable {
  let change: FlightChange
  /// The flight, which this board may not have announced yet.
  let flight: Flight
}
