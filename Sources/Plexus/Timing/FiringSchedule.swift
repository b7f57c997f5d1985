/// The rules that turn touches into firings.
///
/// Instants are durations since a fixed moment. They never decrease, except in ``restart(at:)``.
protocol FiringSchedule: Sendable {
  /// The time at which the pending firing is due, or `nil` if none is pending.
  var deadline: Duration? { get }

  /// Handles a touch that has no effect other than to keep or postpone the deadline of a pending firing.
  ///
  /// The fast path of ``touch(at:)`` for the many touches between the first and the last.
  ///
  /// - Returns: Whether that was all; if `false`, nothing has changed.
  mutating func postpone(at now: Duration) -> Bool

  /// Handles a touch, after ``elapse(at:)`` at the same instant.
  ///
  /// - Returns: Whether it fires immediately.
  mutating func touch(at now: Duration) -> Bool

  /// Handles the passage of time.
  ///
  /// - Returns: Whether the pending firing happens.
  mutating func elapse(at now: Duration) -> Bool

  /// Makes the pending firing, if any, due now.
  ///
  /// - Returns: Whether it happens.
  mutating func expire(at now: Duration) -> Bool

  /// Drops the pending firing, if any.
  mutating func cancel()

  /// Handles the withdrawal of the last firing, which nothing has received: it counts as not having happened.
  mutating func withdrawFiring()

  /// Handles a clock that has been set back: the pending delay or the interval restarts.
  mutating func restart(at now: Duration)
}
