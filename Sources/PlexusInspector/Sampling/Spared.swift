/// A value that takes time to make, and is made again only after twenty times as long.
///
/// Invariant: making it takes at most a twentieth of the time of a thread.
struct Spared<Value: Sendable>: Sendable {
  private var kept: (value: Value, end: ContinuousClock.Instant)?

  /// Returns the value that is kept, unless it is time to make it again.
  func value(at now: ContinuousClock.Instant) -> Value? {
    kept.flatMap { now < $0.end ? $0.value : nil }
  }

  /// Keeps a value that was made in a span of time.
  mutating func keep(
    _ value: Value,
    from start: ContinuousClock.Instant,
    to end: ContinuousClock.Instant
  ) {
    kept = (value, end + (end - start) * 20)
  }
}
