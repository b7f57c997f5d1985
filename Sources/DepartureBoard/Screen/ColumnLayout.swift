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

  /// What stands above the column.
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

/// Which columns there is room for, and how wide they are.
struct ColumnLayout: Hashable, Sendable {
  /// A column and the number of characters that it takes, without the gap before it.
  struct Entry: Hashable, Sendable {
    let column: Column
    let width: Int
  }

  /// The characters before the first column.
  static let margin = 1
  /// The characters between two columns; the last of them is where a stale value is marked.
  static let gap = 2

  /// The columns from left to right.
  let entries: [Entry]

  /// Chooses the columns for a width.
  ///
  /// First come the columns that matter most; what is left over widens those with names.
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

  /// The widths that columns are given while there is room, in order of importance.
  private static let wishes: [(column: Column, width: Int)] = [
    (.time, 5), (.destination, 3), (.status, 14), (.flight, 7), (.origin, 4), (.weather, 16),
    (.destination, 12), (.airline, 12), (.destination, 18), (.aircraft, 15), (.airline, 17),
    (.destination, 22), (.lands, 5), (.origin, 18), (.aircraft, 24), (.airline, 24),
    (.destination, 36),
  ]
}
