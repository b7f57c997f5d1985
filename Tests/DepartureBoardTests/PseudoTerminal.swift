import Foundation
import TestSupport
import Testing

/// A terminal of a given size whose screen is read by the test.
final class PseudoTerminal: Sendable {
  /// The terminal device of the program.
  let device: FileHandle
  private let screen: Int32
  /// Output that was read but not returned yet.
  private let unread = Guarded(Data())

  init(columns: Int, rows: Int) throws {
    #if os(Linux)
    // The portable functions are not available to Swift there; these are the underlying requests.
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

  /// Whether typed characters are echoed on the screen.
  var echoes: Bool {
    var settings = termios()
    return tcgetattr(screen, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
  }

  /// Types keys.
  func type(_ keys: String) throws {
    let bytes = Array(keys.utf8)
    try #require(write(screen, bytes, bytes.count) == bytes.count)
  }

  /// Resizes the window.
  func resize(columns: Int, rows: Int) throws {
    try Self.resize(screen, columns, rows)
  }

  private static func resize(_ screen: Int32, _ columns: Int, _ rows: Int) throws {
    var window = winsize()
    window.ws_col = UInt16(columns)
    window.ws_row = UInt16(rows)
    try #require(ioctl(screen, UInt(TIOCSWINSZ), &window) == 0)
  }

  /// Reads up to the end of a text, or everything if the last program closes the terminal before.
  ///
  /// Output after the text is kept for the next call. The loop runs on a separate thread: an ending program
  /// waits only a second for its reader, and a test can wait longer than that for a thread of the task pool.
  func read(until text: String) async -> String {
    await Program.onThread { [self] in self.text(upTo: Data(text.utf8)).text }
  }

  /// Reads up to the end of the first whole frame that fits; returns everything up to there.
  ///
  /// - Throws: An error if the last program closes the terminal before.
  @discardableResult
  func read(untilFrame fits: @escaping @Sendable (Frame) -> Bool) async throws -> String {
    let (output, isFound) = await Program.onThread { [self] in
      var output = ""
      while true {
        let (text, isWhole) = self.text(upTo: Data(Frame.end.utf8))
        output += text
        guard isWhole else { return (output, false) }
        if let frame = Frame.all(in: text).last, fits(frame) { return (output, true) }
      }
    }
    try #require(isFound, "no frame is like that: \(output.suffix(2000).debugDescription)")
    return output
  }

  /// Reads until the last program closes the terminal.
  func readToEnd() async -> String {
    await Program.onThread { [self] in
      var all = unread.withLock { $0 }
      while let more = readNow() { all += more }
      return String(decoding: all, as: UTF8.self)
    }
  }

  private func text(upTo end: Data) -> (text: String, isFound: Bool) {
    var all = unread.withLock { $0 }
    var searched = 0
    while true {
      if let range = all.range(of: end, in: searched..<all.count) {
        unread.withLock { [rest = Data(all[range.upperBound...])] in $0 = rest }
        return (String(decoding: all[..<range.upperBound], as: UTF8.self), true)
      }
      searched = max(0, all.count - end.count + 1)
      guard let more = readNow() else {
        unread.withLock { $0 = Data() }
        return (String(decoding: all, as: UTF8.self), false)
      }
      all += more
    }
  }

  private func readNow() -> Data? {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = Foundation.read(screen, &buffer, buffer.count)
    return count > 0 ? Data(buffer[..<count]) : nil
  }
}

/// One frame of the board, as written to a terminal.
struct Frame: Sendable {
  static let end = "\u{1B}[?2026l"
  private static let begin = "\u{1B}[H"

  /// The output with its control sequences.
  let source: String

  /// The lines without control sequences.
  var lines: [String] {
    // A terminal adds a second carriage return.
    source.replacing(/\u{1B}\[[0-9;?]*[a-zA-Z]/, with: "").filter { $0 != "\r" }
      .split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
      .map { String($0) }
  }

  /// Returns the complete frames in the output of a terminal, without truncated ones.
  static func all(in output: String) -> [Frame] {
    output.components(separatedBy: begin).dropFirst().compactMap { text in
      text.range(of: end).map { Frame(source: String(text[..<$0.lowerBound])) }
    }
  }
}
