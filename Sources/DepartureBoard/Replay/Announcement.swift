/// What the replay tells those who follow the day.
enum Announcement: Hashable, Sendable {
  /// A flight will leave at the time for which it is scheduled.
  case scheduled(Flight)
  /// A flight did not leave at the time for which it was scheduled, and is expected to later.
  case delayed(Flight.ID, until: ClockTime)
  case departed(Flight.ID, at: ClockTime)
  case cancelled(Flight.ID)
  /// The origin has gone away or has come back.
  case origin(isOnline: Bool)
  /// The clock has moved, and everything up to this moment has been announced.
  case clock(Duration)
}
