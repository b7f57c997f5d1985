// Unsafe: the C library fills a structure through a pointer, which is not kept.

internal import Synchronization

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Android)
internal import Android
#elseif canImport(WASILibc)
internal import WASILibc
#endif

/// The time of a clock, in nanoseconds since a fixed moment.
///
/// Reading `ContinuousClock` costs more than a table lookup, so the system's coarse clock replaces it.
/// Its reading changes once per tick, every 1 to 10 milliseconds depending on the system, and advances while the
/// machine sleeps. Other clocks are used directly.
@usableFromInline
struct TimeSource: Sendable {
  /// The clock, or `nil` for the coarse clock.
  @usableFromInline let clock: (any ErasedClock)?

  /// - Parameters:
  ///   - clock: The clock.
  ///   - isExact: Whether to read `ContinuousClock` itself instead of the coarse clock.
  init(_ clock: any Clock<Duration>, isExact: Bool = false) {
    self.clock = clock is ContinuousClock && !isExact ? nil : clock.erased()
  }

  /// Returns the current time.
  @inlinable
  func now() -> Nanoseconds {
    guard let clock else { return coarseNanoseconds() }
    return clock.nanoseconds()
  }

  /// Returns the exact time since some moment, to measure durations.
  ///
  /// The clock of the system is read without a call of it. Its readings are not comparable with those of ``now()``.
  func exactNow() -> Nanoseconds {
    clock?.nanoseconds() ?? continuousNanoseconds()
  }
}

/// Returns the reading of the system's coarse clock, which advances while the machine sleeps.
@usableFromInline
func coarseNanoseconds() -> Nanoseconds {
  #if canImport(Darwin)
  Nanoseconds(truncatingIfNeeded: clock_gettime_nsec_np(CLOCK_MONOTONIC_RAW_APPROX))
  #elseif canImport(WASILibc)
  continuousNanoseconds()
  #else
  let coarse = nanoseconds(of: CLOCK_MONOTONIC_COARSE)
  return coarse &+ TimeSource.Asleep.shared.value(at: coarse) { nanoseconds(of: CLOCK_BOOTTIME) }
  #endif
}

/// Returns the precise reading of the system's monotonic clock.
@usableFromInline
func monotonicNanoseconds() -> Nanoseconds {
  #if canImport(Darwin)
  Nanoseconds(truncatingIfNeeded: clock_gettime_nsec_np(CLOCK_MONOTONIC_RAW))
  #elseif canImport(WASILibc)
  continuousNanoseconds()
  #else
  nanoseconds(of: CLOCK_MONOTONIC)
  #endif
}

/// Returns the time that `ContinuousClock` measures, in nanoseconds since some moment.
private func continuousNanoseconds() -> Nanoseconds {
  #if canImport(Darwin)
  monotonicNanoseconds()
  #elseif canImport(WASILibc)
  Nanoseconds(saturating: origin.duration(to: .now))
  #else
  nanoseconds(of: CLOCK_BOOTTIME)
  #endif
}

/// Returns the time since 1970-01-01T00:00Z, which can be changed in both directions.
///
/// Used only for times that must remain meaningful after a restart.
@usableFromInline
package func wallClockTime() -> Duration {
  #if canImport(WASILibc)
  var time = timespec()
  unsafe timespec_get(&time, TIME_UTC)
  return .nanoseconds(nanoseconds(time))
  #else
  .nanoseconds(nanoseconds(of: CLOCK_REALTIME))
  #endif
}

#if canImport(WASILibc)
// The clocks of the C library are macros that Swift does not import.
private let origin = ContinuousClock.now
#else
private func nanoseconds(of clock: clockid_t) -> Nanoseconds {
  var time = timespec()
  unsafe clock_gettime(clock, &time)
  return nanoseconds(time)
}
#endif

private func nanoseconds(_ time: timespec) -> Nanoseconds {
  Nanoseconds(time.tv_sec) &* 1_000_000_000 &+ Nanoseconds(time.tv_nsec)
}

extension TimeSource {
  /// The time for which the machine has slept.
  ///
  /// The coarse clock stops during sleep, and `CLOCK_BOOTTIME` has no coarse variant: their difference is read
  /// once per tick.
  struct Asleep: ~Copyable, Sendable {
    static let shared = TimeSource.Asleep()

    private let lastTick = Atomic<Nanoseconds>(.min)
    private let value = Atomic<Nanoseconds>(0)

    init() {}

    /// Returns the time for which the machine has slept.
    ///
    /// - Parameters:
    ///   - tick: The coarse reading.
    ///   - reading: A closure that reads the clock that advances during sleep.
    /// - Returns: The time, which never decreases.
    @inline(__always)
    func value(at tick: Nanoseconds, _ reading: () -> Nanoseconds) -> Nanoseconds {
      guard tick != lastTick.load(ordering: .acquiring) else {
        return value.load(ordering: .relaxed)
      }
      return look(at: tick, reading)
    }

    @inline(never)
    private func look(at tick: Nanoseconds, _ reading: () -> Nanoseconds) -> Nanoseconds {
      // The coarse reading lags by up to a tick; differences below 100 ms are not counted as sleep.
      let difference = reading() &- tick
      let known = value.load(ordering: .relaxed)
      let result = difference > known &+ 100_000_000 ? difference : known
      value.max(result, ordering: .relaxed)
      lastTick.store(tick, ordering: .releasing)
      return result
    }
  }
}
