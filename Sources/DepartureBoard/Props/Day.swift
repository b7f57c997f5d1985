import Foundation

/// A flight from New York on the replayed day.
struct Flight: Codable, Hashable, Identifiable, Sendable {
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
  var weatherKey: String {
    "\(origin)/\(scheduled.hour)"
  }

  /// The flight designator: the airline's code and a number.
  var designator: String {
    "\(carrier) \(number)"
  }
}

/// An airline, without the legal form in its name.
struct Airline: Codable, Hashable, Sendable {
  let name: String
}

/// The manufacturer and the model of an aircraft.
struct Aircraft: Codable, Hashable, Sendable {
  let name: String
}

/// An airport, without suffixes such as "International" in its name.
struct Airport: Codable, Hashable, Sendable {
  let name: String
  /// The identifier of the time zone.
  let timeZone: String
}

/// The weather at an airport in one hour.
struct Weather: Codable, Hashable, Sendable {
  /// The temperature in degrees Fahrenheit, if measured.
  let temperature: Double?
  /// The wind speed in miles per hour, if measured.
  let windSpeed: Double?
  /// The visibility in miles.
  let visibility: Double

  /// The temperature, wind and visibility in a few characters.
  var name: String {
    let parts = [
      temperature.map { String(format: "%.0f°F", $0) },
      windSpeed.map { String(format: "%.0fmph", $0) },
      String(format: "%gmi", (visibility * 10).rounded() / 10),
    ]
    return parts.compactMap { $0 }.joined(separator: " ")
  }
}

/// The data of the replayed day.
struct Day: Sendable {
  /// The flights in the order of the timetable.
  let flights: [Flight]
  let airlines: [String: Airline]
  let aircraft: [String: Aircraft]
  let airports: [String: Airport]
  /// The weather by airport and hour, such as `EWR/9`.
  let weather: [String: Weather]

  /// Loads the day from the resources of the program.
  ///
  /// - Throws: A ``DayError`` for a table without a value, or the error of reading a file.
  init() throws {
    flights = try Row.all("flights").enumerated().map { try Flight($1, id: $0) }
    airlines = try Row.values("airlines", "carrier") { row in
      let form = /\ (Inc\.|Co\.|Corporation)$/
      return Airline(name: try row.text("name").replacing(form, with: ""))
    }
    aircraft = try Row.values("planes", "tailnum") { row in
      let form = /\ (INDUSTRIE|INC|LTD|CO|CORP|CORPORATION|AIRCRAFT CO)$/
      let maker = try row.text("manufacturer").replacing(form, with: "").capitalized
      let name = maker.replacing("Mcdonnell", with: "McDonnell")
      return Aircraft(name: "\(name) \(try row.text("model"))")
    }
    airports = try Row.values("airports", "faa") { row in
      let suffix = /\ (International Airport|Regional Airport|International|Intl|Rgnl)$/
      let name = try row.text("name").replacing(suffix, with: "")
      return Airport(name: name, timeZone: try row.text("tzone"))
    }
    weather = try Row.values("weather", "origin", "hour") { row in
      Weather(
        temperature: row["temp"].flatMap(Double.init),
        windSpeed: row["wind_speed"].flatMap(Double.init),
        visibility: try row.number("visib")
      )
    }
  }
}

/// An error in the tables of the program.
struct DayError: Error, CustomStringConvertible {
  let description: String
}

extension Flight {
  /// Parses a row of the timetable.
  fileprivate init(_ row: Row, id: Int) throws {
    // The time as hhmm, without leading zeros.
    let clock: Int = try row.number("sched_dep_time")
    scheduled = ClockTime(minutes: clock / 100 * 60 + clock % 100)
    // The actual time has no date; the delay determines it.
    departed = row["dep_delay"].flatMap(Int.init).map { [scheduled] delay in
      scheduled.advanced(by: .minutes(delay))
    }
    self.id = id
    carrier = try row.text("carrier")
    number = try row.number("flight")
    tailNumber = row["tailnum"]
    origin = try row.text("origin")
    destination = try row.text("dest")
    minutesInTheAir = row["air_time"].flatMap(Int.init)
  }
}

/// A row of a table of comma-separated values without quotes, whose first line names the columns.
private struct Row {
  let table: String
  let fields: [Substring: Substring]

  /// Reads all rows of a table of the program.
  static func all(_ table: String) throws -> [Row] {
    guard let url = Bundle.module.url(forResource: table, withExtension: "csv") else {
      throw DayError(description: "\(table).csv is missing beside the program; build it again")
    }
    let text = try String(contentsOf: url, encoding: .utf8)
    let lines = text.split(separator: "\n").map {
      $0.split(separator: ",", omittingEmptySubsequences: false)
    }
    return lines.dropFirst().map { fields in
      Row(table: table, fields: Dictionary(zip(lines[0], fields)) { first, _ in first })
    }
  }

  /// Returns the values of all rows of a table, by the texts of the key columns.
  static func values<Value>(
    _ table: String,
    _ columns: Substring...,
    value: (Row) throws -> Value
  ) throws -> [String: Value] {
    let pairs = try all(table).map { row in
      (try columns.map(row.text).joined(separator: "/"), try value(row))
    }
    return Dictionary(pairs) { first, _ in first }
  }

  /// The text of a column, or `nil` if it is unknown.
  subscript(column: Substring) -> String? {
    guard let field = fields[column], !field.isEmpty, field != "NA" else { return nil }
    return String(field)
  }

  /// Returns the text of a required column.
  func text(_ column: Substring) throws -> String {
    guard let text = self[column] else {
      throw DayError(description: "\(table).csv has a row without \"\(column)\"")
    }
    return text
  }

  /// Returns the number in a required column.
  func number<Number: LosslessStringConvertible>(_ column: Substring) throws -> Number {
    guard let number = Number(try text(column)) else {
      throw DayError(description: "\(table).csv has a row without a number in \"\(column)\"")
    }
    return number
  }
}
