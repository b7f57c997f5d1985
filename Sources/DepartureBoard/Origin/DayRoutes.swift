import Foundation

/// The responses of the origin by path.
///
/// | path | answer |
/// |---|---|
/// | `/airlines/UA` | an airline |
/// | `/aircraft/N14228` | an aircraft |
/// | `/airports/EWR` | an airport |
/// | `/weather/EWR/9` | the weather at an airport in an hour, with a time to live |
/// | `/badges/UA.ppm` | the badge of an airline |
struct DayRoutes: Sendable {
  /// The time to live of the weather, in seconds.
  static let weatherAge = 20 * 60

  /// A response with its caching headers.
  struct Answer: Hashable, Sendable {
    var body: [UInt8]
    var contentType = "application/json"
    /// The entity tag, or `nil` if the response is not revalidated.
    var entityTag: String?
    var cacheControl: String?

    /// Returns the response with an entity tag computed from its bytes by FNV-1a.
    func tagged(cacheControl: String) -> Self {
      let hash = body.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { hash, byte in
        (hash ^ UInt64(byte)) &* 0x100_0000_01b3
      }
      var answer = self
      answer.entityTag = "\"" + String(hash, radix: 16) + "\""
      answer.cacheControl = cacheControl
      return answer
    }
  }

  let day: Day
  private let badges: [String: Pixmap]

  init(day: Day) {
    self.day = day
    badges = BadgePainter.pictures(of: day.airlines.keys)
  }

  /// Returns the response for a path.
  ///
  /// - Parameter path: The decoded path.
  /// - Returns: The response, or `nil` if nothing exists at the path.
  /// - Throws: An error if the value cannot be encoded as JSON.
  func answer(for path: String) throws -> Answer? {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard parts.count >= 3, parts[0].isEmpty else { return nil }
    switch (parts[1], parts.count) {
    case ("airlines", 3): return try json(day.airlines[parts[2]])
    case ("aircraft", 3): return try json(day.aircraft[parts[2]])
    case ("airports", 3): return try json(day.airports[parts[2]])
    case ("weather", 4):
      guard let hour = Int(parts[3]), "\(hour)" == parts[3] else { return nil }
      let weather = day.weather[WeatherKey(origin: parts[2], hour: hour)]
      return try json(weather).map { $0.tagged(cacheControl: "max-age=\(Self.weatherAge)") }
    case ("badges", 3): return badge(parts[2])
    default: return nil
    }
  }

  private func json(_ value: (some Encodable)?) throws -> Answer? {
    guard let value else { return nil }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return Answer(body: Array(try encoder.encode(value)))
  }

  private func badge(_ name: String) -> Answer? {
    guard name.hasSuffix(".ppm"), let picture = badges[String(name.dropLast(4))] else { return nil }
    return Answer(body: picture.ppm, contentType: "image/x-portable-pixmap")
      .tagged(cacheControl: "max-age=31536000, immutable")
  }
}
