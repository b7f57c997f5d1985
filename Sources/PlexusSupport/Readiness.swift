// The pointer is to the storage of an array, and does not outlive its call.

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

/// File descriptors that a thread waits for until they become readable or writable.
package struct Readiness {
  /// The state of a descriptor.
  package struct Flags: OptionSet, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) {
      self.rawValue = rawValue
    }

    package static let readable = Flags(rawValue: 1)
    package static let writable = Flags(rawValue: 2)
    /// Both directions are closed, or the connection has failed.
    package static let gone = Flags(rawValue: 4)
  }

  private var entries: [pollfd] = []

  package init() {}

  /// Removes all descriptors.
  package mutating func removeAll() {
    entries.removeAll(keepingCapacity: true)
  }

  /// Adds a descriptor; without flags it is watched for errors and for its end only.
  package mutating func watch(_ descriptor: Int32, for flags: Flags) {
    var events: Int16 = 0
    if flags.contains(.readable) { events |= Int16(POLLIN) }
    if flags.contains(.writable) { events |= Int16(POLLOUT) }
    entries.append(pollfd(fd: descriptor, events: events, revents: 0))
  }

  /// Waits until a descriptor is ready or the time is over.
  ///
  /// - Parameter milliseconds: How long to wait; without a limit if negative.
  package mutating func wait(milliseconds: Int32) {
    _ = unsafe poll(&entries, nfds_t(entries.count), milliseconds)
  }

  /// The state of the descriptor that was added at the given position.
  package subscript(position: Int) -> Flags {
    let events = Int32(entries[position].revents)
    var flags: Flags = []
    if events & Int32(POLLIN) != 0 { flags.insert(.readable) }
    if events & Int32(POLLOUT) != 0 { flags.insert(.writable) }
    if events & Int32(POLLERR | POLLHUP | POLLNVAL) != 0 { flags.insert(.gone) }
    return flags
  }
}
#endif
