#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#endif

/// The terminal on standard output, while the board controls it.
@MainActor
final class Terminal {
  /// The previous settings of the keyboard; `nil` if the board does not change them.
  private var keyboard: termios?
  private var isEntered = false

  /// Returns whether standard output is a terminal that can be drawn on.
  ///
  /// - Parameter environment: The variables of the environment.
  /// - Returns: Whether it is.
  static func isThere(_ environment: [String: String]) -> Bool {
    isatty(STDOUT_FILENO) == 1 && environment["TERM"] != "dumb"
  }

  /// The current size of the window; 80 by 24 if it is unknown.
  var size: ScreenSize {
    var window = winsize()
    guard
      ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0
    else { return ScreenSize(columns: 80, rows: 24) }
    return ScreenSize(columns: Int(window.ws_col), rows: Int(window.ws_row))
  }

  /// Takes over the screen, and disables the echo of typed characters.
  ///
  /// - Throws: ``Output/Closed`` if the terminal is closed.
  func enter() throws(Output.Closed) {
    guard !isEntered else { return }
    isEntered = true
    var settings = termios()
    if isatty(STDIN_FILENO) == 1, tcgetattr(STDIN_FILENO, &settings) == 0 {
      keyboard = settings
      settings.c_lflag &= ~tcflag_t(ECHO | ICANON)
      tcsetattr(STDIN_FILENO, TCSANOW, &settings)
    }
    try Output.write(Ansi.enter)
  }

  /// Restores the terminal.
  func leave() {
    guard isEntered else { return }
    isEntered = false
    try? Output.write(Ansi.leave)
    if var settings = keyboard {
      // Input that was typed meanwhile is discarded.
      tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
      keyboard = nil
    }
  }
}
