#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Where the program writes to.
enum Output {
  /// Nobody reads what is written any more.
  struct Closed: Error {}

  /// Writes a text to standard output, all of it at once as far as the system allows.
  ///
  /// - Parameter text: The text.
  /// - Throws: ``Closed`` if it cannot be written.
  static func write(_ text: String) throws(Closed) {
    guard write(text, to: STDOUT_FILENO) else { throw Closed() }
  }

  /// Writes a line to standard error, where a failure has nobody left to be told.
  static func complain(_ line: String) {
    _ = write("DepartureBoard: \(line)\n", to: STDERR_FILENO)
  }

  private static func write(_ text: String, to file: Int32) -> Bool {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { systemWrite(file, $0) }
      if count > 0 {
        rest.removeFirst(count)
      } else if errno == EAGAIN {
        // A terminal that others have made non-blocking: wait until it takes more.
        var request = pollfd(fd: file, events: Int16(POLLOUT), revents: 0)
        _ = poll(&request, 1, -1)
      } else if errno != EINTR {
        return false
      }
    }
    return true
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
