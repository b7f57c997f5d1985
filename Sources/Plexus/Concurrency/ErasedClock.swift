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

extension Clock<Duration> {
  /// Calls a closure after some time, unless the returned task is cancelled.
  ///
  /// - Parameters:
  ///   - duration: The time.
  ///   - firesAlways: Whether the closure is also called, early, if the sleep ends with an error.
  ///   - fire: The closure.
  /// - Returns: The task that waits.
  func timer(
    _ duration: Duration,
    firesAlways: Bool = false,
    _ fire: @escaping @Sendable () -> Void
  ) -> Task<Void, Never> {
    let deadline = deadline(after: duration)
    return Task.detached {
      do {
        try await sleep(until: deadline, tolerance: nil)
        fire()
      } catch {
        // The work was faster, or was cancelled.
        if firesAlways { fire() }
      }
    }
  }
}
