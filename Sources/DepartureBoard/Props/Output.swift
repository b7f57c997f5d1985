import Foundation
import Synchronization

/// The output of the program.
enum Output {
  /// An error of output that cannot be written; the code is zero if no reader has read for too long.
  struct Closed: Error {
    let code: Int32
  }

  /// The time limit for a reader after a signal has ended the program, in tenths of a second.
  private static let patience = 10
  private static let isHurried = Atomic(false)

  /// Prepares the standard streams.
  static func prepare() {
    // A closed pipe and a file size limit are detected when a write fails.
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    // If the program was started without one of the streams, an opened file would be mistaken for it.
    for file in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(file, F_GETFD) == -1 {
      // Opened the wrong way round, so that reading and writing fail as before.
      _ = open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }

  /// Limits the time to wait for a slow reader from now on.
  ///
  /// Before, the program waits without limit, because the user of a pager can take any time to read on.
  static func hurry() {
    isHurried.store(true, ordering: .relaxed)
  }

  /// Writes a text.
  ///
  /// - Parameters:
  ///   - text: The text.
  ///   - file: The file, by default standard output.
  /// - Throws: ``Closed`` if it cannot be written.
  static func print(_ text: String, to file: Int32 = STDOUT_FILENO) throws(Closed) {
    var rest = Array(text.utf8)[...]
    var waits = 0
    while !rest.isEmpty {
      var request = pollfd(fd: file, events: Int16(POLLOUT), revents: 0)
      // Writing more than a pipe certainly accepts could block where no signal is handled.
      guard poll(&request, 1, 100) > 0 else {
        if isHurried.load(ordering: .relaxed) { waits += 1 }
        guard waits < patience else { throw Closed(code: 0) }
        continue
      }
      let count = rest.prefix(Int(PIPE_BUF)).withUnsafeBytes {
        write(file, $0.baseAddress, $0.count)
      }
      if count > 0 {
        rest.removeFirst(count)
      } else if errno != EAGAIN, errno != EINTR {
        throw Closed(code: errno)
      }
    }
  }

  /// Writes a line to standard error, ignoring failures.
  static func complain(_ line: String) {
    try? print("DepartureBoard: \(line.printable)\n", to: STDERR_FILENO)
  }
}

extension String {
  /// The text in printable characters of ASCII, with escapes for others.
  var printable: String {
    unicodeScalars.map { (" "..."~").contains($0) ? String($0) : $0.escaped(asASCII: true) }
      .joined()
  }
}

extension Character {
  /// Whether the character can be typed to filter, and takes exactly one column.
  var isPrintable: Bool {
    isASCII && (" "..."~").contains(self)
  }
}
