import Foundation
import Plexus

/// The lines that replace the board without a terminal, one for each flight with a final status.
enum PlainReport {
  /// Prints the lines until the day is over or the task is cancelled.
  ///
  /// - Parameter page: The page to show.
  /// - Throws: ``Output/Closed`` if the output is closed.
  static func follow(_ page: BoardPage) async throws {
    var isOriginOnline = true
    // Every bulletin counts: none is skipped, however slow the reader is.
    for await change in page.subscription(toChangesOfApp: \.bulletin) {
      let bulletin = change.new
      var lines: [String] = []
      if bulletin.isOriginOnline != isOriginOnline {
        isOriginOnline.toggle()
        lines.append(
          "\(bulletin.time)  the origin is \(isOriginOnline ? "online again" : "offline")"
        )
      }
      lines += bulletin.rows.filter(page.state.matches).map(line)
      try Output.print(lines.map { $0 + "\n" }.joined())
      if bulletin.isLast { return }
    }
  }

  /// Returns the line of a flight with a final status.
  static func line(_ row: BoardRow) -> String {
    let flight = row.flight
    let details = row.details
    let origin = words(details.origin, unknown: flight.origin, \.name)
    let destination = words(details.destination, unknown: flight.destination, \.name)
    var answers = [
      words(details.airline, unknown: "unknown airline", \.name),
      words(details.aircraft, unknown: "unknown aircraft", \.name), "\(origin) to \(destination)",
      words(details.weather, unknown: "unknown weather", \.name),
    ]
    if let landing = row.landing { answers.append("lands \(landing)") }
    if row.isHeard { answers.append("announced by another board") }
    let fields = [
      "\(flight.scheduled)", flight.designator.fitted(to: 7),
      "\(flight.origin)-\(flight.destination)", row.status.words.fitted(to: 14),
      answers.joined(separator: ", "),
    ]
    return fields.joined(separator: "  ")
  }

  private static func words<Value>(
    _ cell: Cell<Value>,
    unknown: String,
    _ name: (Value) -> String
  ) -> String {
    switch cell {
    case .pending: "not asked"
    case .unanswered: "no answer"
    case .answered(let value, let isStale):
      (value.map(name) ?? unknown) + (isStale ? " (stale)" : "")
    }
  }
}

extension FlightChange.Status {
  /// The status in words.
  var words: String {
    switch self {
    case .scheduled: "on time"
    case .delayed(let time): "delayed \(time)"
    case .departed(let time): "departed \(time)"
    case .cancelled: "cancelled"
    }
  }
}

extension BoardRow {
  /// The local time of landing, if it is known.
  var landing: ClockTime? {
    guard
      case .departed(let time) = status, let minutes = flight.minutesInTheAir,
      let airport = details.destination.value, let zone = TimeZone(identifier: airport.timeZone)
    else { return nil }
    return time.advanced(by: .minutes(minutes)).local(in: zone)
  }
}
