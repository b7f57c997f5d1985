import Observation
import Plexus

/// A view of the board.
@MainActor
protocol BoardView: AnyObject, Sendable {
  /// Shows the board until the day is over or the task is cancelled.
  ///
  /// - Parameter page: The page to show.
  /// - Throws: ``Output/Closed`` if the output is closed.
  func follow(_ page: BoardPage) async throws(Output.Closed)

  /// Restores the terminal for the shell; the next picture takes it over again.
  func stepAside()
}

/// A view of the board on a terminal, which is redrawn after changes, like a view of observed values.
final class ScreenView: BoardView {
  /// The shortest time between two pictures.
  static let frame = Duration.milliseconds(50)

  private let terminal = Terminal()
  private let colours: ColourDepth
  private var shown: [StyledLine] = []
  private var shownSize: ScreenSize?

  /// Creates a view of the terminal, which it takes over with the first picture.
  ///
  /// - Parameter colours: The colors of the terminal.
  init(colours: ColourDepth) {
    self.colours = colours
  }

  func follow(_ page: BoardPage) async throws(Output.Closed) {
    let board = ObservedValue(page.select { $0.app })
    let filter = ObservedValue(page.select { $0.page })
    let changes = Messenger<Void>()
    let frames = changes.subscription().throttled(for: Self.frame)
    changes.send()
    for await _ in frames {
      guard !Task.isCancelled else { return }
      let (state, filter) = withObservationTracking {
        (board.value, filter.value)
      } onChange: {
        changes.send()
      }
      try draw(state, filter)
      if state.isOver { return }
    }
  }

  func stepAside() {
    terminal.leave()
    shownSize = nil
  }

  private func draw(_ state: BoardState, _ filter: FilterState) throws(Output.Closed) {
    let size = terminal.size
    let lines = BoardRenderer(size: size).lines(state, filter)
    guard lines != shown || size != shownSize else { return }
    try terminal.enter()
    try Output.write(Ansi.frame(lines, colours: colours))
    shown = lines
    shownSize = size
  }
}

/// A view of the board as plain lines, one for each flight with a final status.
final class PlainView: BoardView {
  private var isOriginOnline = true

  /// Creates a view of standard output.
  init() {}

  func follow(_ page: BoardPage) async throws(Output.Closed) {
    // Every bulletin counts: none is skipped, however slow the reader is.
    for await change in page.subscription(toChangesOfApp: \.bulletin) {
      try write(change.new, page.state)
      if change.new.isLast { return }
    }
  }

  func stepAside() {}

  private func write(_ bulletin: Bulletin, _ filter: FilterState) throws(Output.Closed) {
    var lines: [String] = []
    if bulletin.isOriginOnline != isOriginOnline {
      isOriginOnline = bulletin.isOriginOnline
      lines.append(PlainReport.line(originIsOnline: isOriginOnline, at: bulletin.time))
    }
    lines += bulletin.rows.filter(filter.matches).map(PlainReport.line)
    guard !lines.isEmpty else { return }
    try Output.write(lines.map { $0 + "\n" }.joined())
  }
}
