import Dispatch
import Foundation
import Observation
import Plexus

/// The board on a terminal, which is redrawn after changes, like a view of observed values.
@MainActor
final class Screen {
  /// The shortest time between two pictures.
  private static let frame = Duration.milliseconds(50)
  /// Switches to the alternate screen, hides the cursor, and disables line wrapping.
  private static let enter = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l"
  /// Undoes `enter`.
  private static let leave = "\u{1B}[0m\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

  /// A line above the rows, or an empty text for none.
  var note = ""

  private let isColored: Bool
  /// The previous settings of the keyboard; `nil` if the board does not change them.
  private var settings: termios?
  private var keyboard: (any DispatchSourceRead)?
  private var isEntered = false
  private var shown: [Line] = []

  /// Creates a screen of the terminal, which it takes over with the first picture.
  ///
  /// It fails if standard output is not a terminal that can be drawn on.
  ///
  /// - Parameter environment: The variables of the environment.
  init?(environment: [String: String]) {
    guard isatty(STDOUT_FILENO) == 1, environment["TERM"] != "dumb" else { return nil }
    isColored = environment["NO_COLOR", default: ""].isEmpty
  }

  /// Shows the board until the day is over or the task is cancelled.
  ///
  /// - Parameters:
  ///   - page: The page to show.
  ///   - timetable: The timetable, which is shown in place of the rows while it is open.
  /// - Throws: ``Output/Closed`` if the output is closed.
  func follow(_ page: BoardPage, _ timetable: Timetable) async throws {
    let board = ObservedValue(page.select { $0.app })
    let filter = ObservedValue(page.select { $0.page })
    let excerpt = ObservedValue(timetable.excerpt)
    let input = FilterInput(page)
    readKeyboard { typed in input.take(timetable.take(typed)) }
    let scrolling = Task { await timetable.follow() }
    defer { scrolling.cancel() }
    let changes = Messenger<Void>()
    let frames = changes.subscription().throttled(for: Self.frame)
    changes.send()
    for await _ in frames {
      guard !Task.isCancelled else { return }
      let (state, filter, excerpt) = withObservationTracking {
        (board.value, filter.value, excerpt.value)
      } onChange: {
        changes.send()
      }
      try draw(state, filter, excerpt)
      if state.bulletin.isLast { return }
    }
  }

  /// Restores the terminal for the shell; the next picture takes it over again.
  func stepAside() {
    guard isEntered else { return }
    isEntered = false
    try? Output.print(Self.leave)
    // Input that was typed meanwhile is discarded.
    if var settings { tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings) }
  }

  private func draw(
    _ state: BoardState,
    _ filter: FilterState,
    _ excerpt: Timetable.Excerpt?
  ) throws {
    var window = winsize()
    let isKnown = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &window) == 0 && window.ws_col > 0
    var renderer = BoardRenderer(
      columns: isKnown ? Int(window.ws_col) : 80,
      rows: isKnown ? Int(window.ws_row) : 24
    )
    renderer.note = note
    let lines = renderer.lines(state, filter, excerpt)
    guard lines != shown || !isEntered else { return }
    if !isEntered { try takeOver() }
    try Output.print(BoardRenderer.frame(lines, inColor: isColored))
    shown = lines
  }

  /// Takes over the screen, and disables the echo of typed characters.
  private func takeOver() throws {
    isEntered = true
    var settings = termios()
    if isatty(STDIN_FILENO) == 1, tcgetattr(STDIN_FILENO, &settings) == 0 {
      self.settings = settings
      settings.c_lflag &= ~tcflag_t(ECHO | ICANON)
      tcsetattr(STDIN_FILENO, TCSANOW, &settings)
    }
    try Output.print(Self.enter)
  }

  /// Starts to read the keyboard, if standard input is a terminal.
  private func readKeyboard(_ take: @escaping @MainActor (String) -> Void) {
    guard isatty(STDIN_FILENO) == 1 else { return }
    let source = DispatchSource.makeReadSource(fileDescriptor: STDIN_FILENO, queue: .main)
    source.setEventHandler { @Sendable [weak self] in
      var buffer = [UInt8](repeating: 0, count: 256)
      let count = read(STDIN_FILENO, &buffer, buffer.count)
      let isOver = count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)
      let typed = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
      MainActor.assumeIsolated {
        take(typed)
        // A closed terminal would be readable endlessly.
        if isOver { self?.keyboard?.cancel() }
      }
    }
    source.resume()
    keyboard = source
  }
}
