import Foundation
import TestSupport
import Testing

/// A terminal of a given size, of which the test is the screen.
final class PseudoTerminal: Sendable {
  /// What a program takes for its terminal.
  let device: FileHandle
  private let screen: Int32
  /// What has been read beyond the text that was waited for.
  private let unread = Guarded(Data())

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

  /// Reads up to the end of a text, or everything if the last program closes the terminal before.
  ///
  /// What follows the text is left for the next call. The whole loop runs on a thread of its own: a
  /// program that ends waits only a second for its reader, and a test that has to wait for a thread of
  /// the task pool may need longer than that.
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

/// One picture of the board, as it was written to a terminal.
struct Frame: Sendable {
  static let end = "\u{1B}[?2026l"
  private static let begin = "\u{1B}[H"

  /// What was written, with its control sequences.
  let source: String

  /// The lines without control sequences.
  var lines: [String] {
    // A terminal adds a carriage return to the one that is there.
    source.replacing(/\u{1B}\[[0-9;?]*[a-zA-Z]/, with: "").filter { $0 != "\r" }
      .split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
      .map { String($0) }
  }

  /// The whole frames of what was written to a terminal; those that are cut off are left out.
  static func all(in output: String) -> [Frame] {
    output.components(separatedBy: begin).dropFirst().compactMap { text in
      text.range(of: end).map { Frame(source: String(text[..<$0.lowerBound])) }
    }
  }
}
