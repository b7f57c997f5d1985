/// The text of a row in a column.
struct CellText: Hashable, Sendable {
  let text: String
  /// The short form of a name, for narrow columns.
  var code: String?
  let style: Style
  /// Whether the text is stale and must be marked.
  let isStale: Bool
  /// The badge behind the first letters, if any.
  var badge: Badge?

  init(_ column: Column, of row: BoardRow) {
    let flight = row.flight
    let details = row.details
    switch column {
    case .time: self.init(flight.scheduled.description, row)
    case .flight:
      self.init(flight.designator, row)
      badge = details.badge
    case .origin: self.init(details.origin, row, after: flight.origin, \.displayName)
    case .destination:
      self.init(details.destination, row, after: flight.destination, \.displayName)
    case .airline: self.init(details.airline, row, \.displayName)
    case .aircraft: self.init(details.aircraft, row, \.displayName)
    case .weather: self.init(details.weather, row, \.displayName)
    case .status: self.init(status: row)
    case .lands: self.init(row.landing?.description ?? "", row)
    }
  }

  /// Returns the text in an exact number of columns.
  func fitted(to columns: Int) -> String {
    guard let code, columns < code.count + 5 else { return text.fitted(to: columns) }
    return code.fitted(to: columns)
  }

  private init(_ text: String, _ row: BoardRow) {
    self.text = text
    style = row.isDecided ? .faint : .plain
    isStale = false
  }

  private init<Value>(
    _ cell: Cell<Value>,
    _ row: BoardRow,
    after code: String? = nil,
    _ name: (Value) -> String
  ) {
    let words =
      switch cell {
      case .pending: "…"
      case .known(let value, _): name(value)
      case .absent: "—"
      case .unanswered: "?"
      }
    text = code.map { "\($0) \(words)" } ?? words
    self.code = code
    isStale = cell.isStale
    style =
      switch cell {
      case .pending, .absent: .faint
      case .unanswered: .warning
      case .known: cell.isStale ? .warning : row.isDecided ? .faint : .plain
      }
  }

  private init(status row: BoardRow) {
    text = row.statusText
    isStale = false
    style =
      switch row.status {
      case .onTime: .plain
      case .delayed: .warning
      case .departed: .good
      case .cancelled: .bad
      }
  }
}

extension BoardRow {
  /// The status of the flight, in words.
  var statusText: String {
    switch status {
    case .onTime: "on time"
    case .delayed(let time): "delayed \(time)"
    case .departed(let time): "departed \(time)"
    case .cancelled: "cancelled"
    }
  }

  /// The local time of landing, if it is known.
  var landing: ClockTime? {
    guard
      case .departed(let time) = status, let minutes = flight.minutesInTheAir,
      let airport = details.destination.value
    else { return nil }
    return CalendarDay.blizzard.localTime(of: time + minutes, at: airport)
  }
}
