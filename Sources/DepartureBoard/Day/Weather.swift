/// The weather at one of New York's airports in one hour.
struct Weather: Codable, Hashable, Sendable {
  let origin: String
  let hour: Int
  /// In degrees Fahrenheit, if measured.
  let temperature: Double?
  /// In miles per hour, if measured.
  let windSpeed: Double?
  /// In inches.
  let precipitation: Double
  /// In miles.
  let visibility: Double

  /// Temperature, wind and sight in a few characters.
  var displayName: String {
    var parts: [String] = []
    if let temperature { parts.append("\(Int(temperature.rounded()))°F") }
    if let windSpeed { parts.append("\(Int(windSpeed.rounded()))mph") }
    parts.append("\(Self.short(visibility))mi")
    return parts.joined(separator: " ")
  }

  private static func short(_ miles: Double) -> String {
    let tenths = Int((miles * 10).rounded())
    return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
  }
}

extension Weather {
  init(_ row: CSVRow) throws {
    self.init(
      origin: try row.text("origin"),
      hour: try row.integer("hour"),
      temperature: try row.number(ifKnown: "temp"),
      windSpeed: try row.number(ifKnown: "wind_speed"),
      precipitation: try row.number("precip"),
      visibility: try row.number("visib")
    )
  }
}

/// Where and in which hour one asks for the weather.
struct WeatherKey: Hashable, Sendable {
  let origin: String
  let hour: Int
}

extension WeatherKey: LosslessStringConvertible {
  /// Reads a key as it describes itself.
  init?(_ description: String) {
    let parts = description.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let hour = Int(parts[1]) else { return nil }
    self.init(origin: String(parts[0]), hour: hour)
  }

  /// The airport and the hour, as in an address.
  var description: String {
    "\(origin)/\(hour)"
  }
}
