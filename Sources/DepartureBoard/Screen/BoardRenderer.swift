import Plexus

/// The size of a window in characters.
struct ScreenSize: Hashable, Sendable {
  var columns: Int
  var rows: Int
}

/// Draws the board: what is known at a moment of the day, for a size of the window.
///
/// It has never more lines than the window, and no line is wider than it.
struct BoardRenderer: Sendable {
  let size: ScreenSize
  private let layout: ColumnLayout

  init(size: ScreenSize) {
    self.size = size
    layout = ColumnLayout(width: size.columns)
  }

  /// The lines from top to bottom.
  ///
  /// - Parameters:
  ///   - state: What is on the board.
  ///   - tally: What has been counted.
  /// - Returns: At most as many lines as there are rows.
  func lines(_ state: BoardState, _ tally: LookupTally) -> [StyledLine] {
    let head = head(state, tally)
    let rows = state.rows
    // A low window shows flights rather than a frame around them.
    let isLow = size.rows < head.count + 6
    let above = isLow ? Array(head.prefix(1)) : head
    let room = max(0, size.rows - above.count - (isLow ? 0 : 2))
    var lines = above + rows.prefix(room).map(line)
    if !isLow {
      lines += Array(repeating: StyledLine(), count: max(0, room - rows.count) + 1)
      lines.append(foot(state, hidden: max(0, rows.count - room)))
    }
    return lines.prefix(max(0, size.rows)).map { $0.clipped(to: size.columns) }
  }

  // MARK: - Above and below the rows

  private func head(_ state: BoardState, _ tally: LookupTally) -> [StyledLine] {
    var right = StyledLine("8 February 2013  ", .faint)
    right.append("\(state.time) ", .strong)
    let title = StyledLine(" NEW YORK DEPARTURES", .strong)
    var first = StyledLine.spread(title, right, over: size.columns)
    if first.width < title.width + right.width {
      first = .spread(title, StyledLine("\(state.time) ", .strong), over: size.columns)
    }
    let statistics = tally.statistics
    let counters = flow([
      counter("flights", state.flightCount, digits: 3),
      counter("departed", state.departedCount, digits: 3),
      counter("cancelled", state.cancelledCount, digits: 3),
      origin(state),
    ])
    let requests = flow([
      counter("requests", tally.requests, digits: 4),
      counter("fetches", statistics.fetches, digits: 3),
      counter("joins", statistics.joins, digits: 4),
      counter("hits", statistics.hits, digits: 4),
      counter("stale hits", statistics.staleHits, digits: 3),
    ])
    return [first] + counters + requests + [StyledLine(), titles]
  }

  private func foot(_ state: BoardState, hidden: Int) -> StyledLine {
    let hasStaleRows = state.rows.contains { $0.details.staleCount > 0 }
    let legend =
      hasStaleRows
      ? StyledLine(" ~ stale: the last value known", .warning)
      : StyledLine(" — not listed   ? no answer   … asking", .faint)
    let more = hidden > 0 ? StyledLine("\(hidden) more ", .faint) : StyledLine()
    return .spread(legend, more, over: size.columns)
  }

  private func counter(_ name: String, _ count: Int, digits: Int) -> StyledLine {
    let number = String(count)
    var line = StyledLine("\(name) ", .faint)
    line.append(String(repeating: " ", count: max(0, digits - number.count)) + number)
    return line
  }

  private func origin(_ state: BoardState) -> StyledLine {
    var line = StyledLine("origin ", .faint)
    if state.isOriginOnline { line.append("online", .good) } else { line.append("offline", .bad) }
    return line
  }

  /// Sets pieces side by side, on as many lines as they need.
  private func flow(_ pieces: [StyledLine]) -> [StyledLine] {
    var lines: [StyledLine] = []
    for piece in pieces {
      if let last = lines.last, last.width + 3 + piece.width <= size.columns {
        lines[lines.count - 1].append("   ")
        lines[lines.count - 1].append(piece)
      } else {
        var line = StyledLine(" ")
        line.append(piece)
        lines.append(line)
      }
    }
    return lines
  }

  private var titles: StyledLine {
    var line = StyledLine()
    for (index, entry) in layout.entries.enumerated() {
      line.append(
        String(repeating: " ", count: index == 0 ? ColumnLayout.margin : ColumnLayout.gap)
      )
      line.append(entry.column.title.fitted(to: entry.width), .faint)
    }
    return line
  }

  // MARK: - Rows

  private func line(_ row: BoardRow) -> StyledLine {
    var line = StyledLine()
    for (index, entry) in layout.entries.enumerated() {
      let cell = CellText(entry.column, of: row)
      if index == 0 {
        line.append(String(repeating: " ", count: ColumnLayout.margin))
      } else {
        line.append(String(repeating: " ", count: ColumnLayout.gap - 1))
        line.append(cell.isStale ? "~" : " ", cell.isStale ? .warning : .plain)
      }
      line.append(cell.fitted(to: entry.width), cell.style)
    }
    return line
  }
}
