// The pointers are to the storage of an array and to a local variable, and none outlives its call.

#if !os(WASI)
#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#endif

/// A pipe by which any thread wakes a thread that polls.
///
/// Both ends are open until it is released: a write never meets a closed end.
package final class WakePipe: Sendable {
  /// The descriptor to poll.
  package let readEnd: Int32
  private let writeEnd: Int32

  package init() throws(SystemError) {
    var ends: [Int32] = [-1, -1]
    guard unsafe pipe(&ends) == 0 else { throw SystemError(call: "pipe", code: errno) }
    for end in ends {
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
    }
    (readEnd, writeEnd) = (ends[0], ends[1])
  }

  deinit {
    close(readEnd)
    close(writeEnd)
  }

  /// Makes the read end readable.
  package func wake() {
    // A full pipe is readable already.
    var byte: UInt8 = 1
    while unsafe write(writeEnd, &byte, 1) < 0, errno == EINTR {}
  }

  /// Makes the read end unreadable until the next wake.
  package func rest() {
    var buffer = [UInt8](repeating: 0, count: 64)
    while unsafe read(readEnd, &buffer, buffer.count) > 0 {}
  }
}
#endif
