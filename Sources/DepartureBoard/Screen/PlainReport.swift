/// The lines in place of the board where there is no terminal.
enum PlainReport {
  /// The line of a flight whose fate is known.
  ///
  /// - Parameter row: The flight's row.
  /// - Returns: Its line.
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
    return (fields + [answers.joined(separator: ", ")]).joined(separator: "  ")
  }

  /// The line that says that the origin has gone away or has come back.
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
