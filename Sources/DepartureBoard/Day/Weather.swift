/// The weather at one of New York's airports in one hour.
struct Weather: Codable, Hashable, Sendable {
  let origin: String
  let hour: Int
  /// The temperature in degrees Fahrenheit, if measured.
  let temperature: Double?
  /// The wind speed in miles per hour, if measured.
  let windSpeed: Double?
  /// The precipitation in inches.
  let precipitation: Double
  /// The visibility in miles.
  let visibility: Double

  /// The temperature, wind and visibility in a few characters.
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

/// An airport and an hour that identify a weather report.
struct WeatherKey: Hashable, Sendable {
  let origin: String
  let hour: Int
}

extension WeatherKey: LosslessStringConvertible {
  /// Parses the description of a key.
  init?(_ description: String) {
    let parts = description.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let hour = Int(parts[1]) else { return nil }
    self.init(origin: String(parts[0]), hour: hour)
  }

  /// The airport and the hour as in a URL path.
  var description: String {
    "\(origin)/\(hour)"
  }
}
