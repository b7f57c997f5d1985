/// A flight that left New York on the replayed day, or should have.
struct Flight: Hashable, Identifiable, Sendable {
  /// The place of the flight in the day's timetable.
  let id: Int
  let scheduled: ClockTime
  /// When it left; `nil` if it was cancelled.
  let departed: ClockTime?
  /// The code of the airline.
  let carrier: String
  let number: Int
  /// The registration of the aircraft; `nil` if none was ever assigned.
  let tailNumber: String?
  /// The code of the airport in New York.
  let origin: String
  /// The code of the airport to which it goes.
  let destination: String
  /// The minutes in the air; `nil` if it did not arrive at its destination.
  let minutesInTheAir: Int?

  /// Whose weather concerns the flight: its origin's, in the hour in which it should leave.
  var weatherKey: WeatherKey {
    WeatherKey(origin: origin, hour: scheduled.hour)
  }

  /// How passengers know it: the airline's code and a number.
  var designator: String {
    "\(carrier) \(number)"
  }
}

extension Flight {
  /// Reads a row of the timetable.
  ///
  /// - Parameters:
  ///   - row: The row.
  ///   - id: The place of the flight in the timetable.
  /// - Throws: A ``CSVError`` if a value is missing or malformed, or if the delay does not lead from
  ///   the scheduled to the actual departure.
  init(_ row: CSVRow, id: Int) throws {
    let scheduled = try row.time("sched_dep_time")
    var departed: ClockTime?
    if let clock = try row.time(ifKnown: "dep_time") {
      // The clock does not tell on which day; the delay does.
      let delay = try row.integer("dep_delay")
      let time = scheduled + delay
      guard time.isSameOnTheClock(as: clock) else {
        throw row.error(
          .malformed(
            column: "dep_delay",
            value: "\(delay)",
            expected: "the delay from \(scheduled) to \(clock)"
          )
        )
      }
      departed = time
    }
    self.init(
      id: id,
      scheduled: scheduled,
      departed: departed,
      carrier: try row.text("carrier"),
      number: try row.integer("flight"),
      tailNumber: try row.text(ifKnown: "tailnum"),
      origin: try row.text("origin"),
      destination: try row.text("dest"),
      minutesInTheAir: try row.integer(ifKnown: "air_time")
    )
  }
}
