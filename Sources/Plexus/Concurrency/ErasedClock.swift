/// A type-erased clock that measures the time since a fixed moment.
@usableFromInline
package protocol ErasedClock: AnyObject, Sendable {
  /// Returns the current time.
  func now() -> Duration

  /// Sleeps until a deadline.
  ///
  /// - Throws: The error of the clock, normally `CancellationError` if the task is cancelled.
  func sleep(until deadline: Duration) async throws
}

extension ErasedClock {
  /// Returns the current time in nanoseconds.
  @usableFromInline
  func nanoseconds() -> Nanoseconds {
    Nanoseconds(saturating: now())
  }
}

private final class AnchoredClock<Source: Clock<Duration>>: ErasedClock {
  let source: Source
  let origin: Source.Instant

  init(_ source: Source) {
    self.source = source
    origin = source.now
  }

  func now() -> Duration {
    origin.duration(to: source.now)
  }

  func sleep(until deadline: Duration) async throws {
    try await source.sleep(until: origin.advanced(by: deadline), tolerance: nil)
  }
}

/// The default clock, specialized to avoid the overhead of a generic clock.
private final class ErasedContinuousClock: ErasedClock {
  static let shared = ErasedContinuousClock()

  let origin = ContinuousClock.now

  func now() -> Duration {
    origin.duration(to: ContinuousClock.now)
  }

  func sleep(until deadline: Duration) async throws {
    try await ContinuousClock().sleep(until: origin.advanced(by: deadline), tolerance: nil)
  }
}

extension Clock<Duration> {
  /// Returns a type-erased clock that counts from now or from an earlier moment.
  package func erased() -> any ErasedClock {
    self is ContinuousClock ? ErasedContinuousClock.shared : AnchoredClock(self)
  }
}

extension ErasedClock {
  /// Sleeps until a deadline, also if the clock wakes the task earlier.
  ///
  /// A clock whose `sleep` returns at once, without having moved, is a programmer error: the program stops in debug
  /// builds. In release builds, the rest is slept on the system's clock, so that no CPU time is spent.
  ///
  /// - Parameters:
  ///   - deadline: The deadline.
  ///   - stop: Called if the clock stands still.
  /// - Returns: Whether the clock has reached the deadline; `false` if `sleep` threw, the task was cancelled, or the
  ///   clock stands still.
  package func hasSlept(
    until deadline: Duration,
    onStandstill stop: @Sendable () -> Void = stopBecauseOfStandstill
  ) async -> Bool {
    var wakes = EarlyWakes()
    while true {
      do {
        try await sleep(until: deadline)
      } catch {
        return false
      }
      let now = self.now()
      guard now < deadline else { return true }
      guard !Task.isCancelled else { return false }
      guard wakes.isTooOften(at: now) else {
        await Task.yield()
        continue
      }
      stop()
      try? await ContinuousClock().sleep(for: deadline - now)
      return self.now() >= deadline
    }
  }
}
