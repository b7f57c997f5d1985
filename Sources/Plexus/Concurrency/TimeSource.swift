// Unsafe because the C library fills a structure through a pointer, which is not kept.

internal import Synchronization

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
/// reading of the system's clock is taken, which changes with each tick: every 1 to 10 milliseconds, as the system is
/// configured. It goes on while the machine sleeps. Every other clock is asked itself.
@usableFromInline
struct TimeSource: Sendable {
  /// The clock; `nil` if the coarse reading takes its place.
  @usableFromInline let clock: (any ErasedClock)?

  /// - Parameters:
  ///   - clock: The clock.
  ///   - isExact: Whether a tick of the coarse reading is too long.
  init(_ clock: any Clock<Duration>, isExact: Bool = false) {
    self.clock = clock is ContinuousClock && !isExact ? nil : clock.erased()
  }

  /// The reading at this moment, which is never before an earlier one.
  @inlinable
  func now() -> Nanoseconds {
    guard let clock else { return coarseNanoseconds() }
    return clock.nanoseconds()
  }
}

/// The coarse reading of the system's clock, which goes on while the machine sleeps.
@usableFromInline
func coarseNanoseconds() -> Nanoseconds {
  #if canImport(Darwin)
  Nanoseconds(truncatingIfNeeded: clock_gettime_nsec_np(CLOCK_MONOTONIC_RAW_APPROX))
  #else
  let coarse = nanoseconds(of: CLOCK_MONOTONIC_COARSE)
  return coarse &+ TimeSource.Asleep.shared.value(at: coarse) { nanoseconds(of: CLOCK_BOOTTIME) }
  #endif
}

/// The precise reading of the system's monotonic clock.
@usableFromInline
func monotonicNanoseconds() -> Nanoseconds {
  #if canImport(Darwin)
  Nanoseconds(truncatingIfNeeded: clock_gettime_nsec_np(CLOCK_MONOTONIC_RAW))
  #else
  nanoseconds(of: CLOCK_MONOTONIC)
  #endif
}

/// The time since 1970-01-01T00:00Z, which can be set forwards and backwards.
///
/// It serves only what has to mean something after a restart.
@usableFromInline
func wallClockTime() -> Duration {
  .nanoseconds(nanoseconds(of: CLOCK_REALTIME))
}

private func nanoseconds(of clock: clockid_t) -> Nanoseconds {
  var time = timespec()
  unsafe clock_gettime(clock, &time)
  return Nanoseconds(time.tv_sec) &* 1_000_000_000 &+ Nanoseconds(time.tv_nsec)
}

extension TimeSource {
  /// The time that the machine has slept.
  ///
  /// The system's coarse clock stands still meanwhile, and the clock that does not has no coarse reading: their
  /// difference is looked at once a tick.
  struct Asleep: ~Copyable, Sendable {
    static let shared = TimeSource.Asleep()

    private let lastTick = Atomic<Nanoseconds>(.min)
    private let value = Atomic<Nanoseconds>(0)

    init() {}

    /// Returns the time that the machine has slept.
    ///
    /// - Parameters:
    ///   - tick: The coarse reading.
    ///   - reading: Reads the clock that goes on while the machine sleeps.
    /// - Returns: The time, which never becomes shorter.
    @inline(__always)
    func value(at tick: Nanoseconds, _ reading: () -> Nanoseconds) -> Nanoseconds {
      guard tick != lastTick.load(ordering: .acquiring) else {
        return value.load(ordering: .relaxed)
      }
      return look(at: tick, reading)
    }

    @inline(never)
    private func look(at tick: Nanoseconds, _ reading: () -> Nanoseconds) -> Nanoseconds {
      // The coarse reading lags behind by up to a tick, which is no sleep.
      let difference = reading() &- tick
      let known = value.load(ordering: .relaxed)
      let result = difference > known &+ 100_000_000 ? difference : known
      value.max(result, ordering: .relaxed)
      lastTick.store(tick, ordering: .releasing)
      return result
    }
  }
}
