import Foundation

/// What the origin has to say about a path.
///
/// | path | answer |
/// |---|---|
/// | `/airlines/UA` | an airline |
/// | `/aircraft/N14228` | an aircraft |
/// | `/airports/EWR` | an airport |
/// | `/weather/EWR/9` | the weather at an airport in an hour |
struct DayRoutes: Sendable {
  let day: Day

  /// The answer in JSON; `nil` for what does not exist.
  ///
  /// - Parameter path: The path, without escapes.
  /// - Returns: The answer.
  /// - Throws: An error if it cannot be written as JSON.
  func body(for path: String) throws -> Data? {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard parts.count >= 3, parts[0].isEmpty else { return nil }
    switch (parts[1], parts.count) {
    case ("airlines", 3): return try json(day.airlines[parts[2]])
    case ("aircraft", 3): return try json(day.aircraft[parts[2]])
    case ("airports", 3): return try json(day.airports[parts[2]])
    case ("weather", 4):
      guard let hour = Int(parts[3]), "\(hour)" == parts[3] else { return nil }
      return try json(day.weather[WeatherKey(origin: parts[2], hour: hour)])
    default: return nil
    }
  }

  private func json(_ value: (some Encodable)?) throws -> Data? {
    guard let value else { return nil }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(value)
  }
}
