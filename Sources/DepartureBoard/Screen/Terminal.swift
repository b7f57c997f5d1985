#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The terminal on standard output, as the board has it to itself for a while.
@MainActor
final class Terminal {
  /// How the keyboard was set before; `nil` if it is none of ours to set.
  private var keyboard: termios?
  private var isEntered = false

  /// Whether standard output is a terminal on which one can draw.
  ///
  /// - Parameter environment: The variables of the environment.
  /// - Returns: Whether it is.
  static func isThere(_ environment: [String: String]) -> Bool {
    isatty(STDOUT_FILENO) == 1 && environment["TERM"] != "dumb"
  }

  /// The size of the window at this moment; 80 by 24 if the terminal does not tell.
  var size: ScreenSize {
    var window = winsize()
    guard
      ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0
    else { return ScreenSize(columns: 80, rows: 24) }
    return ScreenSize(columns: Int(window.ws_col), rows: Int(window.ws_row))
  }

  /// Takes the screen over, and keeps what is typed from showing on it.
  ///
  /// - Throws: ``Output/Closed`` if the terminal is gone.
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

  /// Gives the terminal back as it was.
  func leave() {
    guard isEntered else { return }
    isEntered = false
    try? Output.write(Ansi.leave)
    if var settings = keyboard {
      // What was typed meanwhile was meant for nobody.
      tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
      keyboard = nil
    }
  }
}
