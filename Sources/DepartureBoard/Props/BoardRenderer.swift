import Plexus
import PlexusNetworking

/// A piece of text with a style.
struct Span: Hashable, Sendable {
  /// The style of a text, which is a code of terminals.
  enum Style: Hashable, Sendable {
    case plain, strong, faint, good, warning, bad
    /// Black letters on a background color of the palette.
    case badge(Badge)
  }

  var text: String
  var style: Style

  init(_ text: String, _ style: Style = .plain) {
    self.text = text
    self.style = style
  }

  /// Returns the text with its control sequences.
  func encoded(inColor isColored: Bool) -> String {
    let code =
      switch style {
      case .plain: ""
      case .strong: "1"
      case .faint: "2"
      case .good: isColored ? "32" : ""
      case .warning: isColored ? "33" : ""
      case .bad: isColored ? "31" : ""
      case .badge(let badge): isColored ? badge.code : ""
      }
    return code.isEmpty ? text : "\u{1B}[\(code)m\(text)\u{1B}[0m"
  }
}

extension Badge {
  /// The code of terminals for black letters on the color; the first 16 colors need no palette.
  fileprivate var code: String {
    switch color {
    case ..<8: "30;\(40 + color)"
    case ..<16: "30;\(92 + color)"
    default: "38;5;16;48;5;\(color)"
    }
  }
}

extension ImageVariant? {
  /// The badges of the terminal that the variables of an environment describe.
  static func badges(in environment: [String: String]) -> Self {
    let hasFewColors = ["ansi", "linux", "screen", "xterm"].contains(environment["TERM"])
    return hasFewColors && environment["COLORTERM", default: ""].isEmpty ? .sixteenColors : nil
  }
}

/// A line of text; no character of it takes two columns.
typealias Line = [Span]

extension Line {
  /// The text without styles.
  var text: String {
    map(\.text).joined()
  }

  /// Returns the line, truncated to a number of columns.
  func clipped(to columns: Int) -> Line {
    var room = columns
    return map { span in
      defer { room -= span.text.count }
      return Span(String(span.text.prefix(Swift.max(0, room))), span.style)
    }
  }
}

extension String {
  /// Returns the text in an exact number of columns, padded with spaces or truncated with an ellipsis.
  func fitted(to columns: Int) -> String {
    count <= columns
      ? self + String(repeating: " ", count: columns - count) : prefix(columns - 1) + "…"
  }
}

/// Draws the board for a size of the window.
///
/// The picture never has more lines than the window, and no line is wider than it.
struct BoardRenderer: Sendable {
  let columns: Int
  let rows: Int
  /// A line above the rows, or an empty text for none.
  var note = ""

  /// Returns a whole picture, to be written at once.
  ///
  /// Overwritten cells are not cleared, so that nothing flickers. Terminals that support synchronized output show the
  /// picture in one step.
  static func frame(_ lines: [Line], inColor isColored: Bool) -> String {
    let text = lines.map { line in
      line.map { $0.encoded(inColor: isColored) }.joined() + "\u{1B}[K"
    }
    return "\u{1B}[?2026h\u{1B}[H" + text.joined(separator: "\r\n") + "\u{1B}[J\u{1B}[?2026l"
  }

  /// Returns the lines from top to bottom.
  ///
  /// - Parameters:
  ///   - state: The state of the board.
  ///   - filter: The filter of the rows.
  ///   - timetable: The part of the timetable to show in place of the rows, if any.
  /// - Returns: At most as many lines as the window has.
  func lines(
    _ state: BoardState,
    _ filter: FilterState = FilterState(),
    _ timetable: Timetable.Excerpt? = nil
  ) -> [Line] {
    // The details of flights that are not on the board are unknown.
    let shown = visible(in: timetable == nil ? columns : min(columns, 42))
    let head = head(state, shown)
    let matching = timetable?.flights.map(state.row(of:)) ?? state.rows.filter(filter.matches)
    // A low window shows flights instead of a frame around them.
    let isLow = rows < head.count + 6
    let above = isLow ? Array(head.prefix(1)) : head
    let room = max(0, rows - above.count - (isLow ? 0 : 2))
    var lines = above + matching.prefix(room).map { line($0, shown) }
    if !isLow {
      lines += Array(repeating: [], count: max(0, room - matching.count) + 1)
      lines.append(
        timetable.map(foot) ?? foot(matching, filter, hidden: max(0, matching.count - room))
      )
    }
    return lines.prefix(max(0, rows)).map { $0.clipped(to: columns) }
  }

  // MARK: - Above and below the rows

  private func head(_ state: BoardState, _ shown: [Column]) -> [Line] {
    let date = columns < 50 ? "" : "8 February 2013  "
    let title = spread(
      [Span(" NEW YORK DEPARTURES", .strong)],
      [Span(date, .faint), Span("\(state.time) ", .strong)]
    )
    let statistics = state.statistics
    let isOnline = state.isOriginOnline
    let heard = state.heardCount == 0 ? [] : [counter("changes from boards", state.heardCount)]
    let flights = flow(
      [
        counter("flights", state.flightCount), counter("departed", state.departedCount),
        counter("cancelled", state.cancelledCount),
      ] + heard + [
        counter("revalidated", statistics.revalidations),
        [Span("origin ", .faint), isOnline ? Span("online", .good) : Span("offline", .bad)],
      ]
    )
    let requests = flow([
      counter("requests", statistics.requests), counter("fetches", statistics.newFetches),
      counter("joins", statistics.joins), counter("hits", statistics.hits),
      counter("stale hits", statistics.staleHits),
    ])
    let titles = shown.map { column in [Span(column.title.fitted(to: column.width), .faint)] }
    let notes: [Line] = note.isEmpty ? [] : [[Span(" \(note)", .faint)]]
    return [title] + flights + requests + notes + [[], joined(titles.map { ($0, false) })]
  }

  private func foot(_ rows: [BoardRow], _ filter: FilterState, hidden: Int) -> Line {
    let left: Line
    if !filter.typed.isEmpty || !filter.text.isEmpty {
      let flights = " \(rows.count) \(rows.count == 1 ? "flight" : "flights")"
      // Without the number, until the typed text is in effect.
      let end = filter.typed == filter.text ? "_ \(flights)" : "_ "
      left = [Span(" filter: ", .faint), Span(filter.typed.printable, .strong), Span(end, .faint)]
    } else if rows.contains(where: { $0.details.staleCount > 0 }) {
      left = [Span(" ~ stale: the last value known", .warning)]
    } else {
      left = [Span(" — not listed   ? no answer   … asking   type to filter   ↑↓ all day", .faint)]
    }
    return hidden > 0 ? spread(left, [Span("\(hidden) more ", .faint)]) : left
  }

  private func foot(_ timetable: Timetable.Excerpt) -> Line {
    let keys = Span(" ↑ earlier   ↓ later   Escape: the board", .faint)
    if timetable.hasFailed { return [keys, Span("   ? no answer", .warning)] }
    return [keys, Span(timetable.isLoading ? "   … asking" : "", .faint)]
  }

  private func counter(_ name: String, _ count: Int) -> Line {
    let number = String(count)
    let padding = String(repeating: " ", count: max(0, 3 - number.count))
    return [Span("\(name) ", .faint), Span(padding + number)]
  }

  /// Places two pieces at the ends of a line; without room, the second is omitted.
  private func spread(_ left: Line, _ right: Line) -> Line {
    let gap = columns - left.text.count - right.text.count
    return gap < 2 ? left : left + [Span(String(repeating: " ", count: gap))] + right
  }

  /// Places pieces side by side, on as many lines as necessary.
  private func flow(_ pieces: [Line]) -> [Line] {
    var lines: [Line] = []
    for piece in pieces {
      if let last = lines.last, last.text.count + 3 + piece.text.count <= columns {
        lines[lines.count - 1] += [Span("   ")] + piece
      } else {
        lines.append([Span(" ")] + piece)
      }
    }
    return lines
  }

  // MARK: - Rows

  /// The columns that fit into a window.
  private func visible(in width: Int) -> [Column] {
    Column.all.filter { $0.minimum <= width }
  }

  private func line(_ row: BoardRow, _ shown: [Column]) -> Line {
    joined(
      shown.map { column in
        var (spans, isStale) = column.content(row)
        let last = spans.removeLast()
        let width = column.width - spans.text.count
        return (spans + [Span(last.text.fitted(to: width), last.style)], isStale)
      }
    )
  }

  /// Places the cells of a line side by side, with a mark before stale ones.
  private func joined(_ cells: [(line: Line, isStale: Bool)]) -> Line {
    cells.enumerated().flatMap { index, cell in
      let margin = index == 0 ? [] : [Span(" ")]
      return margin + [cell.isStale ? Span("~", .warning) : Span(" ")] + cell.line
    }
  }
}

/// A column of the board.
private struct Column: Sendable {
  typealias Content = (line: Line, isStale: Bool)

  let title: String
  let width: Int
  /// The width of the narrowest window with the column.
  let minimum: Int
  let content: @Sendable (BoardRow) -> Content

  init(
    _ title: String,
    width: Int,
    from minimum: Int,
    _ content: @escaping @Sendable (BoardRow) -> Content
  ) {
    self.title = title
    self.width = width
    self.minimum = minimum
    self.content = content
  }

  static let all = [
    Column("TIME", width: 5, from: 0) { text("\($0.flight.scheduled)", $0) },
    Column("FLIGHT", width: 7, from: 36, flight),
    Column("FROM", width: 4, from: 42) { code($0.flight.origin, $0.details.origin, $0) },
    Column("AIRPORT", width: 15, from: 147) { name($0.details.origin, $0, \.name) },
    Column("TO", width: 3, from: 11) { code($0.flight.destination, $0.details.destination, $0) },
    Column("DESTINATION", width: 18, from: 80) { name($0.details.destination, $0, \.name) },
    Column("AIRLINE", width: 19, from: 101) { name($0.details.airline, $0, \.name) },
    Column("AIRCRAFT", width: 20, from: 130) { name($0.details.aircraft, $0, \.name) },
    Column("WEATHER", width: 16, from: 60) { name($0.details.weather, $0, \.name) },
    Column("STATUS", width: 14, from: 27, status),
    Column("LANDS", width: 5, from: 108) { text($0.landing?.description ?? "", $0) },
  ]

  private static func text(_ text: String, _ row: BoardRow) -> Content {
    ([Span(text, row.status.isFinal ? .faint : .plain)], false)
  }

  /// The number of the flight, with the code of the airline on its badge.
  private static func flight(_ row: BoardRow) -> Content {
    guard let badge = row.details.badge else { return text(row.flight.designator, row) }
    return (
      [Span(row.flight.carrier, .badge(badge))] + text(" \(row.flight.number)", row).line, false
    )
  }

  private static func code(_ code: String, _ airport: Cell<Airport>, _ row: BoardRow) -> Content {
    airport.isStale ? ([Span(code, .warning)], true) : text(code, row)
  }

  private static func name<Value>(
    _ cell: Cell<Value>,
    _ row: BoardRow,
    _ name: (Value) -> String
  ) -> Content {
    switch cell {
    case .pending: ([Span("…", .faint)], false)
    case .unanswered: ([Span("?", .warning)], false)
    case .answered(let value, let isStale):
      if isStale {
        ([Span(value.map(name) ?? "—", .warning)], true)
      } else {
        text(value.map(name) ?? "—", row)
      }
    }
  }

  private static func status(_ row: BoardRow) -> Content {
    let style: Span.Style =
      switch row.status {
      case .scheduled: .plain
      case .delayed: .warning
      case .departed: .good
      case .cancelled: .bad
      }
    return ([Span(row.status.words, style)], false)
  }
}
