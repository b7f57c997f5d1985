// Unsafe: the C library fills a local variable through a pointer, which it does not keep.

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#endif

/// A reading of a clock of the system, or a time between two of them.
typealias Nanoseconds = Int64

extension Nanoseconds {
  /// The reading of the clock that no setting of the date changes, and that advances while the machine sleeps.
  static var now: Nanoseconds {
    #if canImport(Darwin)
    let clock = CLOCK_MONOTONIC
    #else
    let clock = CLOCK_BOOTTIME
    #endif
    var time = timespec()
    _ = unsafe clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// The length of a duration, at most about 36 years: the sum of some of them fits.
  init(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    let limit = Int64.max / 8_000_000_000
    self = Swift.min(Swift.max(seconds, 0), limit) * 1_000_000_000 + attoseconds / 1_000_000_000
  }
}
