/// An action that changes the board.
enum BoardAction: Sendable {
  case flight(FlightChange)
  /// Another board has announced a change.
  case heard(HeardChange)
  /// The origin has become reachable or unreachable.
  case origin(isOnline: Bool)
  /// The clock has advanced.
  case clock(Duration)
  /// The details of rows are being looked up.
  case asked([Flight.ID])
  /// The details of a row have arrived.
  case answered(RowDetails, for: Flight.ID)
  /// A moment has been processed and is reported.
  case report(LookupTally)
  /// The day is over.
  case end(LookupTally)
}
