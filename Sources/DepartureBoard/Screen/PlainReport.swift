/// The lines that replace the board without a terminal.
enum PlainReport {
  /// Returns the line of a flight with a final status.
  ///
  /// - Parameter row: The flight's row.
  /// - Returns: The line.
  static func line(_ row: BoardRow) -> String {
    let flight = row.flight
    let details = row.details
    let fields = [
      flight.scheduled.description,
      flight.designator.fitted(to: 7),
      "\(flight.origin)-\(flight.destination)",
      row.statusText.fitted(to: 14),
    ]
    var answers = [
      words(details.airline, unknown: "unknown airline", \.displayName),
      words(details.aircraft, unknown: "unknown aircraft", \.displayName),
      words(details.origin, unknown: flight.origin, \.displayName) + " to "
        + words(details.destination, unknown: flight.destination, \.displayName),
      words(details.weather, unknown: "unknown weather", \.displayName),
    ]
    if let landing = row.landing { answers.append("lands \(landing)") }
    if row.isHeard { answers.append("announced by another board") }
    return (fields + [answers.joined(separator: ", ")]).joined(separator: "  ")
  }

  /// Returns the line about the origin becoming reachable or unreachable.
  static func line(originIsOnline isOnline: Bool, at time: ClockTime) -> String {
    "\(time)  \(isOnline ? "the origin is online again" : "the origin is offline")"
  }

  private static func words<Value>(
    _ cell: Cell<Value>,
    unknown: String,
    _ name: (Value) -> String
  ) -> String {
    let words =
      switch cell {
      case .pending: "not asked"
      case .known(let value, _): name(value)
      case .absent: unknown
      case .unanswered: "no answer"
      }
    return cell.isStale ? "\(words) (stale)" : words
  }
}
