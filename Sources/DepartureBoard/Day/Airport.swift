/// A place from which or to which one flies.
struct Airport: Codable, Hashable, Sendable {
  /// Its code of three letters.
  let code: String
  let name: String
  /// In degrees north.
  let latitude: Double
  /// In degrees east.
  let longitude: Double
  /// Above the sea, in feet.
  let altitude: Int
  /// Hours from UTC in standard time.
  let utcOffset: Int
  /// The name of the time zone, which knows about summer time.
  let timeZone: String

  /// The name as short as people say it.
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
