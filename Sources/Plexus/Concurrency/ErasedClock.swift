/// A clock of whatever type that tells the time since some moment before, and sleeps.
@usableFromInline
protocol ErasedClock: AnyObject, Sendable {
  /// The time at this moment.
  func now() -> Duration

  /// Sleeps until the time has come.
  ///
  /// - Throws: What the clock throws, as a rule `CancellationError` when the task is cancelled.
  func sleep(until deadline: Duration) async throws
}

extension ErasedClock {
  /// The time at this moment in nanoseconds.
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

/// The clock that everybody uses, compiled for what it is: a touch costs little more than to read it.
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
  /// Returns the clock as one that counts from now, or from a moment before.
  func erased() -> any ErasedClock {
    self is ContinuousClock ? ErasedContinuousClock.shared : AnchoredClock(self)
  }
}
