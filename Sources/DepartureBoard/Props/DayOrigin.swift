import Foundation
import LoopbackOrigin

/// The local origin serves the data of the day:
///
/// | path | answer |
/// |---|---|
/// | `/airlines/UA` | an airline |
/// | `/aircraft/N14228` | an aircraft |
/// | `/airports/EWR` | an airport |
/// | `/weather/EWR/9` | the weather at an airport in an hour, with a time to live and an entity tag |
/// | `/badges/UA` | the badge of an airline |
/// | `/departures/3` | a page of the timetable, with the names of the pages before and after it |
/// | `/departures/at/545` | the page with the first departure at a minute of the day |
extension LoopbackOrigin {
  /// The time to live of the weather, in seconds.
  private static let weatherAge = 20 * 60
  /// Bright colors, of which neighbors are easy to distinguish.
  private static let palette = [
    208, 39, 220, 171, 118, 203, 51, 229, 141, 154, 217, 80, 180, 105, 190, 44,
  ]

  /// The number of flights on a page of the timetable.
  private static let pageLength = 20

  /// Serves the data of a day.
  ///
  /// - Throws: An error if a value cannot be encoded.
  func serve(_ day: Day) throws {
    try serve(day.airlines, at: "airlines")
    try serve(day.aircraft, at: "aircraft")
    try serve(day.airports, at: "airports")
    try serve(day.weather, at: "weather", age: Self.weatherAge)
    for (carrier, color) in zip(day.airlines.keys.sorted(), Self.palette) {
      route("/badges/\(carrier)") { _ in OriginResponse(text: "\(color)\n") }
    }
    try serve(timetable: day.flights)
  }

  private func serve(timetable flights: [Flight]) throws {
    let starts = Array(stride(from: 0, to: flights.count, by: Self.pageLength))
    let pages = try starts.indices.map { number in
      let page = TimetablePage(
        flights: Array(flights[starts[number]...].prefix(Self.pageLength)),
        previous: number == 0 ? nil : "\(number - 1)",
        next: number == starts.count - 1 ? nil : "\(number + 1)"
      )
      return OriginResponse(json: String(decoding: try JSONEncoder().encode(page), as: UTF8.self))
    }
    for (number, page) in pages.enumerated() { route("/departures/\(number)") { _ in page } }
    route("/departures/at/*") { request in
      let minute = request.pathComponents.last.flatMap { Int($0) } ?? 0
      let time = ClockTime(minutes: minute)
      let first = flights.firstIndex { $0.scheduled >= time } ?? flights.count - 1
      return pages[first / Self.pageLength]
    }
  }

  /// The number of requests for badges.
  var badgeCount: Int {
    count(of: "/badges/")
  }

  /// The number of requests for pages of the timetable.
  var pageCount: Int {
    count(of: "/departures/")
  }

  private func count(of prefix: String) -> Int {
    statistics.requests.filter { $0.key.hasPrefix(prefix) }.values.reduce(0, +)
  }

  private func serve(
    _ values: [String: some Encodable],
    at path: String,
    age: Int? = nil
  ) throws {
    for (key, value) in values {
      let json = String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
      var response = OriginResponse(json: json)
      if let age {
        response.headers["Cache-Control"] = "max-age=\(age)"
        // The data does not change, so each value has one version only.
        response.etag = "\"1\""
      }
      route("/\(path)/\(key)") { [response] _ in response }
    }
  }
}
