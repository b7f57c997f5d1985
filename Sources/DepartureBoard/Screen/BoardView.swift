/// Where the board is shown.
@MainActor
protocol BoardView: AnyObject {
  /// Shows a moment of the day.
  ///
  /// - Parameters:
  ///   - state: What is on the board.
  ///   - reports: The rows whose fate has become known since the last time.
  ///   - tally: What has been counted.
  /// - Throws: ``Output/Closed`` if nobody looks any more.
  func show(_ state: BoardState, reports: [BoardRow], _ tally: LookupTally) throws(Output.Closed)

  /// Makes way for the shell for a while; `show` comes back.
  func stepAside()
}

/// The board on a terminal, drawn anew whenever something on it has changed.
final class ScreenView: BoardView {
  private let terminal = Terminal()
  private let isColoured: Bool
  private var shown: [StyledLine] = []
  private var shownSize: ScreenSize?

  /// Creates a view of the terminal, which it takes over with the first picture.
  init(isColoured: Bool) {
    self.isColoured = isColoured
  }

  func show(_ state: BoardState, reports: [BoardRow], _ tally: LookupTally) throws(Output.Closed) {
    let size = terminal.size
    let lines = BoardRenderer(size: size).lines(state, tally)
    guard lines != shown || size != shownSize else { return }
    try terminal.enter()
    try Output.write(Ansi.frame(lines, isColoured: isColoured))
    shown = lines
    shownSize = size
  }

  func stepAside() {
    terminal.leave()
    shownSize = nil
  }
}

/// The board as plain lines, one for each flight whose fate is known.
final class PlainView: BoardView {
  private var isOriginOnline = true

  /// Creates a view of standard output, whatever that is.
  init() {}

  func show(_ state: BoardState, reports: [BoardRow], _ tally: LookupTally) throws(Output.Closed) {
    var lines: [String] = []
    if state.isOriginOnline != isOriginOnline {
      isOriginOnline = state.isOriginOnline
      lines.append(PlainReport.line(originIsOnline: isOriginOnline, at: state.time))
    }
    lines += reports.map(PlainReport.line)
    guard !lines.isEmpty else { return }
    try Output.write(lines.map { $0 + "\n" }.joined())
  }

  func stepAside() {}
}
