import Plexus

/// The size of a window in characters.
struct ScreenSize: Hashable, Sendable {
  var columns: Int
  var rows: Int
}

/// Draws the board for a size of the window.
///
/// The picture never has more lines than the window, and no line is wider than it.
struct BoardRenderer: Sendable {
  let size: ScreenSize
  private let layout: ColumnLayout

  init(size: ScreenSize) {
    self.size = size
    layout = ColumnLayout(width: size.columns)
  }

  /// Returns the lines from top to bottom.
  ///
  /// - Parameters:
  ///   - state: The state of the board.
  ///   - filter: The filter of the rows.
  /// - Returns: At most as many lines as the window has rows.
  func lines(_ state: BoardState, _ filter: FilterState = FilterState()) -> [StyledLine] {
    let head = head(state)
    let rows = state.rows.filter(filter.matches)
    // A low window shows flights instead of a frame around them.
    let isLow = size.rows < head.count + 6
    let above = isLow ? Array(head.prefix(1)) : head
    let room = max(0, size.rows - above.count - (isLow ? 0 : 2))
    var lines = above + rows.prefix(room).map(line)
    if !isLow {
      lines += Array(repeating: StyledLine(), count: max(0, room - rows.count) + 1)
      lines.append(foot(rows, filter, hidden: max(0, rows.count - room)))
    }
    return lines.prefix(max(0, size.rows)).map { $0.clipped(to: size.columns) }
  }

  // MARK: - Above and below the rows

  private func head(_ state: BoardState) -> [StyledLine] {
    var right = StyledLine("8 February 2013  ", .faint)
    right.append("\(state.time) ", .strong)
    let title = StyledLine(" NEW YORK DEPARTURES", .strong)
    var first = StyledLine.spread(title, right, over: size.columns)
    if first.width < title.width + right.width {
      first = .spread(title, StyledLine("\(state.time) ", .strong), over: size.columns)
    }
    let tally = state.tally
    let statistics = tally.statistics
    let heard =
      state.heardCount > 0 ? [counter("changes from boards", state.heardCount, digits: 3)] : []
    let counters = flow(
      [
        counter("flights", state.flightCount, digits: 3),
        counter("departed", state.departedCount, digits: 3),
        counter("cancelled", state.cancelledCount, digits: 3),
      ] + heard + [counter("revalidated", tally.revalidated, digits: 3), origin(state)]
    )
    let requests = flow([
      counter("requests", tally.requests, digits: 4),
      counter("fetches", tally.fetches, digits: 3),
      counter("joins", statistics.joins, digits: 4),
      counter("hits", statistics.hits, digits: 4),
      counter("stale hits", statistics.staleHits, digits: 3),
    ])
    return [first] + counters + requests + [StyledLine(), titles]
  }

  private func foot(_ rows: [BoardRow], _ filter: FilterState, hidden: Int) -> StyledLine {
    let more = hidden > 0 ? StyledLine("\(hidden) more ", .faint) : StyledLine()
    let left = filter.isEmpty ? legend(rows) : question(filter, rows.count)
    return .spread(left, more, over: size.columns)
  }

  private func legend(_ rows: [BoardRow]) -> StyledLine {
    rows.contains { $0.details.staleCount > 0 }
      ? StyledLine(" ~ stale: the last value known", .warning)
      : StyledLine(" — not listed   ? no answer   … asking   type to filter", .faint)
  }

  /// The text being typed, and the number of matching rows once it is in effect.
  private func question(_ filter: FilterState, _ count: Int) -> StyledLine {
    var line = StyledLine(" filter: ", .faint)
    line.append(filter.typed.inSingleColumns, .strong)
    line.append("_ ", .faint)
    if !filter.isPending { line.append(" \(count) \(count == 1 ? "flight" : "flights")", .faint) }
    return line
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

  /// Places pieces side by side, on as many lines as necessary.
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
      line.append(text(of: cell, entry.width))
    }
    return line
  }

  /// The text of a cell, whose first letters can be on a badge.
  private func text(of cell: CellText, _ width: Int) -> StyledLine {
    var rest = cell.fitted(to: width)[...]
    var line = StyledLine()
    for ground in cell.badge?.cells ?? [] {
      guard let letter = rest.popFirst() else { break }
      line.append(String(letter), .badge(ground, isFaint: cell.style == .faint))
    }
    line.append(String(rest), cell.style)
    return line
  }
}
