/// An airport.
struct Airport: Codable, Hashable, Sendable {
  /// The three-letter code.
  let code: String
  let name: String
  /// The latitude in degrees north.
  let latitude: Double
  /// The longitude in degrees east.
  let longitude: Double
  /// The altitude in feet.
  let altitude: Int
  /// The offset from UTC in standard time, in hours.
  let utcOffset: Int
  /// The identifier of the time zone.
  let timeZone: String

  /// The name without suffixes such as "International".
  var displayName: String {
    name.removingSuffixes([
      " International Airport", " Regional Airport", " International", " Intl", " Rgnl",
    ])
  }
}

extension Airport {
  init(_ row: CSVRow) throws {
    self.init(
      code: try row.text("faa"),
      name: try row.text("name"),
      latitude: try row.number("lat"),
      longitude: try row.number("lon"),
      altitude: try row.integer("alt"),
      utcOffset: try row.integer("tz"),
      timeZone: try row.text("tzone")
    )
  }
}
