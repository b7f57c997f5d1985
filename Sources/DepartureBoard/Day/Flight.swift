/// A flight from New York on the replayed day.
struct Flight: Hashable, Identifiable, Sendable {
  /// The position of the flight in the timetable.
  let id: Int
  let scheduled: ClockTime
  /// The time of departure, or `nil` if the flight was cancelled.
  let departed: ClockTime?
  /// The code of the airline.
  let carrier: String
  let number: Int
  /// The registration of the aircraft, or `nil` if none was assigned.
  let tailNumber: String?
  /// The code of the airport in New York.
  let origin: String
  /// The code of the destination airport.
  let destination: String
  /// The flight time in minutes, or `nil` if the flight did not arrive at its destination.
  let minutesInTheAir: Int?

  /// The key of the weather at the origin in the hour of the scheduled departure.
  var weatherKey: WeatherKey {
    WeatherKey(origin: origin, hour: scheduled.hour)
  }

  /// The flight designator: the airline's code and a number.
  var designator: String {
    "\(carrier) \(number)"
  }
}

extension Flight {
  /// Parses a row of the timetable.
  ///
  /// - Parameters:
  ///   - row: The row.
  ///   - id: The position of the flight in the timetable.
  /// - Throws: A ``CSVError`` if a value is missing or malformed, or if the delay does not match the scheduled
  ///   and actual departures.
  init(_ row: CSVRow, id: Int) throws {
    let scheduled = try row.time("sched_dep_time")
    var departed: ClockTime?
    if let clock = try row.time(ifKnown: "dep_time") {
      // The clock time has no date; the delay determines it.
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
