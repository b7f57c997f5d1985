import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Where the program writes to.
enum Output {
  /// What is written does not arrive any more.
  struct Closed: Error, Hashable {
    /// Why, as the system says it; zero if nobody has read for too long.
    let code: Int32

    /// What to say about it; nothing where a reader has just gone away.
    var complaint: String? {
      switch code {
      case 0, EPIPE, EIO: nil
      default: "the output cannot be written: \(String(cString: strerror(code)))"
      }
    }
  }

  /// How long one waits for a reader when the program has been told to end, in tenths of a second.
  private static let patience = 10
  private static let isHurried = Atomic(false)

  /// From now on nobody waits long for a reader who does not read.
  ///
  /// Until then one does for ever: whoever looks at a page of a pager wants the rest as well.
  static func hurry() {
    isHurried.store(true, ordering: .relaxed)
  }

  /// Writes a text to standard output.
  ///
  /// - Parameter text: The text.
  /// - Throws: ``Closed`` if it cannot be written.
  static func write(_ text: String) throws(Closed) {
    try write(text, to: STDOUT_FILENO)
  }

  /// Writes a line to standard error, where a failure has nobody left to be told.
  ///
  /// - Parameter line: The line; what would end it or change the terminal is written as an escape.
  static func complain(_ line: String) {
    try? write("DepartureBoard: \(line.onOneLine)\n", to: STDERR_FILENO)
  }

  /// Makes sure that files that are opened are not taken for the standard streams.
  ///
  /// Whoever starts a program may close those; what the program opens next would get their numbers.
  static func occupyStandardStreams() {
    for file in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(file, F_GETFD) == -1 {
      // The wrong way round, so that reading and writing fail as before.
      _ = open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }

  private static func write(_ text: String, to file: Int32) throws(Closed) {
    var rest = Array(text.utf8)[...]
    var waits = 0
    while !rest.isEmpty {
      // Writing more than a pipe surely takes could wait where no signal is heeded.
      guard isReady(file) else {
        if isHurried.load(ordering: .relaxed) { waits += 1 }
        guard waits < patience else { throw Closed(code: 0) }
        continue
      }
      let count = rest.prefix(Int(PIPE_BUF)).withUnsafeBytes { systemWrite(file, $0) }
      if count > 0 {
        rest.removeFirst(count)
      } else if errno != EAGAIN, errno != EINTR {
        throw Closed(code: errno)
      }
    }
  }

  /// Waits for a tenth of a second at most until a file takes more, or will never again.
  private static func isReady(_ file: Int32) -> Bool {
    var request = pollfd(fd: file, events: Int16(POLLOUT), revents: 0)
    return poll(&request, 1, 100) > 0
  }

  private static func systemWrite(_ file: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    #if canImport(Darwin)
    Darwin.write(file, bytes.baseAddress, bytes.count)
    #elseif canImport(Glibc)
    Glibc.write(file, bytes.baseAddress, bytes.count)
    #elseif canImport(Musl)
    Musl.write(file, bytes.baseAddress, bytes.count)
    #endif
  }
}

extension String {
  /// The text with escapes in place of what would end a line or change a terminal.
  fileprivate var onOneLine: String {
    unicodeScalars.reduce(into: "") { text, scalar in
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator:
        text += scalar.escaped(asASCII: true)
      default:
        text.unicodeScalars.append(scalar)
      }
    }
  }
}
