import Foundation
import Testing

/// A terminal of a given size, of which the test is the screen.
final class PseudoTerminal: Sendable {
  /// What a program takes for its terminal.
  let device: FileHandle
  private let screen: Int32

  init(columns: Int, rows: Int) throws {
    #if os(Linux)
    // The portable functions are hidden from Swift there; these are the requests behind them.
    screen = open("/dev/ptmx", O_RDWR | O_NOCTTY)
    var number: UInt32 = 0
    var lock: Int32 = 0
    try #require(screen >= 0 && ioctl(screen, UInt(0x8004_5430), &number) == 0)
    try #require(ioctl(screen, UInt(0x4004_5431), &lock) == 0)
    let name = "/dev/pts/\(number)"
    #else
    screen = posix_openpt(O_RDWR | O_NOCTTY)
    try #require(screen >= 0 && grantpt(screen) == 0 && unlockpt(screen) == 0)
    let name = try #require(ptsname(screen).map { String(cString: $0) })
    #endif
    try Self.resize(screen, columns, rows)
    let file = open(name, O_RDWR | O_NOCTTY)
    try #require(file >= 0)
    device = FileHandle(fileDescriptor: file, closeOnDealloc: true)
  }

  deinit {
    close(screen)
  }

  /// Whether what is typed shows on the screen.
  var echoes: Bool {
    var settings = termios()
    return tcgetattr(screen, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
  }

  /// Presses keys.
  func type(_ keys: String) throws {
    let bytes = Array(keys.utf8)
    try #require(write(screen, bytes, bytes.count) == bytes.count)
  }

  /// Makes the window larger or smaller.
  func resize(columns: Int, rows: Int) throws {
    try Self.resize(screen, columns, rows)
  }

  private static func resize(_ screen: Int32, _ columns: Int, _ rows: Int) throws {
    var window = winsize()
    window.ws_col = UInt16(columns)
    window.ws_row = UInt16(rows)
    try #require(ioctl(screen, UInt(TIOCSWINSZ), &window) == 0)
  }

  /// Reads what is written next; nothing once the last program has closed the terminal.
  func read() async -> String {
    await Program.onThread { [screen] in
      var buffer = [UInt8](repeating: 0, count: 65_536)
      let count = Foundation.read(screen, &buffer, buffer.count)
      return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : ""
    }
  }

  /// Reads until a text has come or nothing comes any more; returns everything.
  func read(until text: String) async -> String {
    var all = ""
    while !all.contains(text) {
      let more = await read()
      guard !more.isEmpty else { break }
      all += more
    }
    return all
  }
}
