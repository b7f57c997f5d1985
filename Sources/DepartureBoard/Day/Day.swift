import Foundation

/// The data of the replayed day.
struct Day: Sendable {
  /// The flights in the order of the timetable.
  let flights: [Flight]
  let airlines: [String: Airline]
  let aircraft: [String: Aircraft]
  let airports: [String: Airport]
  let weather: [WeatherKey: Weather]

  /// Loads the day from its tables.
  ///
  /// - Parameter table: A closure that returns the text of a table, by its name without the extension.
  /// - Throws: A ``CSVError``, or the error of the closure.
  init(table: (String) throws -> String) throws {
    func rows(_ name: String) throws -> [CSVRow] {
      try CSVTable(name: "\(name).csv", text: table(name)).rows
    }
    func dictionary<Key: Hashable, Value>(
      _ name: String,
      _ key: (Value) -> Key,
      _ read: (CSVRow) throws -> Value
    ) throws -> [Key: Value] {
      let values = try rows(name).map(read)
      return Dictionary(values.map { (key($0), $0) }) { first, _ in first }
    }
    flights = try rows("flights").enumerated().map { try Flight($1, id: $0) }
    airlines = try dictionary("airlines", \.carrier, Airline.init)
    aircraft = try dictionary("planes", \.tailNumber, Aircraft.init)
    airports = try dictionary("airports", \.code, Airport.init)
    weather = try dictionary(
      "weather",
      { WeatherKey(origin: $0.origin, hour: $0.hour) },
      Weather.init
    )
  }

  /// Loads the day from the resources of the program.
  ///
  /// - Throws: A ``CSVError``, a ``MissingTable``, or the error of reading a file.
  static func bundled() throws -> Day {
    try Day { name in
      guard let url = Bundle.module.url(forResource: name, withExtension: "csv") else {
        throw MissingTable(name: name)
      }
      return try String(contentsOf: url, encoding: .utf8)
    }
  }

  /// An error for a table that is missing from the resources of the program.
  struct MissingTable: Error, CustomStringConvertible {
    let name: String

    /// A sentence with the name of the table and a remedy.
    var description: String {
      "\(name).csv is missing beside the program; build it again"
    }
  }
}
