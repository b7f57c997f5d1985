/// A column of the board.
enum Column: CaseIterable, Hashable, Sendable {
  case time
  case flight
  case origin
  case destination
  case airline
  case aircraft
  case weather
  case status
  case lands

  /// The title above the column.
  var title: String {
    switch self {
    case .time: "TIME"
    case .flight: "FLIGHT"
    case .origin: "FROM"
    case .destination: "TO"
    case .airline: "AIRLINE"
    case .aircraft: "AIRCRAFT"
    case .weather: "WEATHER"
    case .status: "STATUS"
    case .lands: "LANDS"
    }
  }
}

/// The columns that fit into a width, and their widths.
struct ColumnLayout: Hashable, Sendable {
  /// A column and its number of characters, without the gap before it.
  struct Entry: Hashable, Sendable {
    let column: Column
    let width: Int
  }

  /// The number of characters before the first column.
  static let margin = 1
  /// The number of characters between two columns; the last of them marks a stale value.
  static let gap = 2

  /// The columns from left to right.
  let entries: [Entry]

  /// Chooses the columns for a width.
  ///
  /// The most important columns come first. The remaining width goes to columns with names.
  init(width: Int) {
    var widths: [Column: Int] = [:]
    var room = width - Self.margin + Self.gap
    for (column, needed) in Self.wishes {
      let extra = needed - (widths[column] ?? -Self.gap)
      guard extra <= room else { continue }
      widths[column] = needed
      room -= extra
    }
    entries = Column.allCases.compactMap { column in
      widths[column].map { Entry(column: column, width: $0) }
    }
  }

  /// The widths that columns get while there is room, in order of importance.
  private static let wishes: [(column: Column, width: Int)] = [
    (.time, 5), (.destination, 3), (.status, 14), (.flight, 7), (.origin, 4), (.weather, 16),
    (.destination, 12), (.airline, 12), (.destination, 18), (.aircraft, 15), (.airline, 17),
    (.destination, 22), (.lands, 5), (.origin, 18), (.aircraft, 24), (.airline, 24),
    (.destination, 36),
  ]
}
