import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#endif

/// The output of the program.
enum Output {
  /// An error of output that is closed.
  struct Closed: Error, Hashable {
    /// The error code of the system, or zero if no reader has read for too long.
    let code: Int32

    /// The message about it, or `nil` if a reader has simply closed the output.
    var complaint: String? {
      switch code {
      case 0, EPIPE, EIO: nil
      default: "the output cannot be written: \(String(cString: strerror(code)))"
      }
    }
  }

  /// The time limit for a reader after a signal has ended the program, in tenths of a second.
  private static let patience = 10
  private static let isHurried = Atomic(false)

  /// Limits the time to wait for a slow reader from now on.
  ///
  /// Before, the program waits without limit, because the user of a pager can take any time to read on.
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

  /// Writes a line to standard error, ignoring failures.
  ///
  /// - Parameter line: The line. Line breaks and control characters are escaped.
  static func complain(_ line: String) {
    try? write("DepartureBoard: \(line.onOneLine)\n", to: STDERR_FILENO)
  }

  /// Ensures that opened files are not mistaken for the standard streams.
  ///
  /// A program can be started without those, and the next opened files would get their numbers.
  static func occupyStandardStreams() {
    for file in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(file, F_GETFD) == -1 {
      // Opened the wrong way round, so that reading and writing fail as before.
      _ = open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }

  private static func write(_ text: String, to file: Int32) throws(Closed) {
    var rest = Array(text.utf8)[...]
    var waits = 0
    while !rest.isEmpty {
      // Writing more than a pipe certainly accepts could block where no signal is handled.
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

  /// Waits for at most a tenth of a second until a file accepts output or has failed.
  private static func isReady(_ file: Int32) -> Bool {
    var request = pollfd(fd: file, events: Int16(POLLOUT), revents: 0)
    return poll(&request, 1, 100) > 0
  }
}

/// The `write` of the C library, which the methods above would shadow.
private func systemWrite(_ file: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
  write(file, bytes.baseAddress, bytes.count)
}

extension String {
  /// The text with escapes for line breaks and control characters.
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
