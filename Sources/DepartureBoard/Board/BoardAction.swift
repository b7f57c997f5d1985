/// What changes the board.
enum BoardAction: Sendable {
  case flight(FlightChange)
  /// The origin has gone away or has come back.
  case origin(isOnline: Bool)
  /// The clock has moved.
  case clock(Duration)
  /// Rows have asked for their details.
  case asked([Flight.ID])
  /// A row has its answers.
  case answered(RowDetails, for: Flight.ID)
  /// A moment has been dealt with: it is time to report what has become known.
  case report(LookupTally)
  /// The day is over.
  case end(LookupTally)
}
