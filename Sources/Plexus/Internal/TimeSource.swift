// Unsafe because the C library fills a structure through a pointer, which is not kept.

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Android)
internal import Android
#endif

/// What a clock says, in nanoseconds since some moment before.
///
/// A reading of `ContinuousClock` costs more than a look-up in a table. In its place the coarse
/// reading of the system's monotonic clock is taken, which lags behind by a few milliseconds at
/// most. Every other clock is asked itself.
@usableFromInline
struct TimeSource: Sendable {
  /// The clock; `nil` if the coarse reading takes its place.
  @usableFromInline let clock: (any AlarmClock)?

  init(_ clock: any Clock<Duration>) {
    self.clock = clock is ContinuousClock ? nil : clock.alarmClock()
  }

  /// The reading at this moment, which is never before an earlier one.
  @inlinable
  func now() -> Nanoseconds {
    guard let clock else { return coarseNanoseconds() }
    return clock.nanoseconds()
  }
}

/// The coarse reading of the system's monotonic clock.
@usableFromInline
func coarseNanoseconds() -> Nanoseconds {
  #if canImport(Darwin)
  Nanoseconds(truncatingIfNeeded: clock_gettime_nsec_np(CLOCK_MONOTONIC_RAW_APPROX))
  #else
  var time = timespec()
  unsafe clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
  return Nanoseconds(time.tv_sec) &* 1_000_000_000 &+ Nanoseconds(time.tv_nsec)
  #endif
}
