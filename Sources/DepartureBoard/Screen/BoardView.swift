import Observation
import Plexus

/// Where the board is shown.
@MainActor
protocol BoardView: AnyObject, Sendable {
  /// Shows what is on the board, and what becomes of it, until the day is over or the task is cancelled.
  ///
  /// - Parameter page: What to show.
  /// - Throws: ``Output/Closed`` if nobody looks any more.
  func follow(_ page: BoardPage) async throws(Output.Closed)

  /// Makes way for the shell for a while; the next picture comes back.
  func stepAside()
}

/// The board on a terminal, drawn anew whenever something on it has changed, as an observed view is.
final class ScreenView: BoardView {
  /// The shortest time between two pictures.
  static let frame = Duration.milliseconds(50)

  private let terminal = Terminal()
  private let colours: ColourDepth
  private var shown: [StyledLine] = []
  private var shownSize: ScreenSize?

  /// Creates a view of the terminal, which it takes over with the first picture.
  ///
  /// - Parameter colours: The colours that it has.
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

/// The board as plain lines, one for each flight whose fate is known.
final class PlainView: BoardView {
  private var isOriginOnline = true

  /// Creates a view of standard output, whatever that is.
  init() {}

  func follow(_ page: BoardPage) async throws(Output.Closed) {
    // Every bulletin counts: none is skipped, however slowly somebody reads.
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
