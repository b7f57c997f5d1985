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
  /// What reads the clock; `nil` if the coarse reading takes its place.
  @usableFromInline let reader: (any ClockReader)?

  init(_ clock: any Clock<Duration>) {
    reader = clock is ContinuousClock ? nil : clock.reader()
  }

  /// The reading at this moment, which is never before an earlier one.
  @inlinable
  func now() -> Nanoseconds {
    guard let reader else { return coarseNanoseconds() }
    return reader.nanoseconds()
  }
}

/// A clock together with the moment from which its readings count.
@usableFromInline
protocol ClockReader: AnyObject, Sendable {
  /// The nanoseconds since the reader was made.
  func nanoseconds() -> Nanoseconds
}

private final class AnchoredClock<Source: Clock>: ClockReader where Source.Duration == Duration {
  let source: Source
  let origin: Source.Instant

  init(_ source: Source) {
    self.source = source
    origin = source.now
  }

  func nanoseconds() -> Nanoseconds {
    Nanoseconds(saturating: origin.duration(to: source.now))
  }
}

extension Clock<Duration> {
  /// Returns what reads the clock, counting from now.
  fileprivate func reader() -> any ClockReader {
    AnchoredClock(self)
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
