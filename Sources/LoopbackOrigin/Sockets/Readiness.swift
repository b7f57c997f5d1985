// The pointers are to the storage of an array and to a local variable, and none outlives its call.

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The sockets and the wake pipe that a thread polls.
struct Readiness {
  /// The state of a socket.
  struct Flags: OptionSet {
    let rawValue: Int

    static let readable = Flags(rawValue: 1)
    static let writable = Flags(rawValue: 2)
    /// Both directions are closed, or the connection has failed.
    static let gone = Flags(rawValue: 4)
  }

  private var entries: [pollfd] = []

  /// Removes all sockets.
  mutating func removeAll() {
    entries.removeAll(keepingCapacity: true)
  }

  /// Adds a socket; without flags, only its end is detected.
  mutating func watch(_ descriptor: Int32, for flags: Flags) {
    var events: Int16 = 0
    if flags.contains(.readable) { events |= Int16(POLLIN) }
    if flags.contains(.writable) { events |= Int16(POLLOUT) }
    entries.append(pollfd(fd: descriptor, events: events, revents: 0))
  }

  /// Waits until a socket is ready or the timeout has passed.
  ///
  /// - Parameter milliseconds: The timeout, or a negative number for none.
  mutating func wait(milliseconds: Int32) {
    _ = unsafe poll(&entries, nfds_t(entries.count), milliseconds)
  }

  /// Returns the state of the socket at a position, in the order of addition.
  subscript(position: Int) -> Flags {
    let events = Int32(entries[position].revents)
    var flags: Flags = []
    if events & Int32(POLLIN) != 0 { flags.insert(.readable) }
    if events & Int32(POLLOUT) != 0 { flags.insert(.writable) }
    if events & Int32(POLLERR | POLLHUP | POLLNVAL) != 0 { flags.insert(.gone) }
    return flags
  }
}

/// A pipe that wakes a polling thread from any thread.
///
/// Both ends stay open while the pipe is referenced, so a write never fails with a closed read end.
final class WakePipe: Sendable {
  let readEnd: Int32
  private let writeEnd: Int32

  init() throws(OriginError) {
    var ends: [Int32] = [-1, -1]
    _ = try checked("pipe", unsafe pipe(&ends))
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
  func wake() {
    // A full pipe is already readable.
    var byte: UInt8 = 1
    while unsafe write(writeEnd, &byte, 1) < 0, errno == EINTR {}
  }

  /// Drains the pipe, so that the read end is not readable until the next wake.
  func rest() {
    var buffer = [UInt8](repeating: 0, count: 64)
    while unsafe read(readEnd, &buffer, buffer.count) > 0 {}
  }
}
