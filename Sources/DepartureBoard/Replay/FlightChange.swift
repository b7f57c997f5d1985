import Plexus

/// Something has become known of a flight.
enum FlightChange: Event, Hashable {
  /// It will leave at the time for which it is scheduled.
  case scheduled(Flight)
  /// It did not leave at the time for which it was scheduled, and is expected to later.
  case delayed(Flight.ID, until: ClockTime)
  case departed(Flight.ID, at: ClockTime)
  case cancelled(Flight.ID)
}
