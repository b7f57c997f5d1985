/// The rules by which touches turn into firings.
///
/// Instants are told as the time since some moment before; none is earlier than the one told before,
/// unless ``restart(at:)`` says so.
protocol FiringSchedule: Sendable {
  /// When the pending firing is due; `nil` if none is pending.
  var deadline: Duration? { get }

  /// A touch that changes nothing but the deadline of what is pending, and that to a later one.
  ///
  /// It is the short way of ``touch(at:)``, for the many touches between the first and the last.
  ///
  /// - Returns: Whether that was all; if not, nothing has changed.
  mutating func postpone(at now: Duration) -> Bool

  /// A touch, after ``elapse(at:)`` at the same instant.
  ///
  /// - Returns: Whether it fires at once.
  mutating func touch(at now: Duration) -> Bool

  /// Time has passed.
  ///
  /// - Returns: Whether what was pending fires.
  mutating func elapse(at now: Duration) -> Bool

  /// What is pending, if anything, is wanted now.
  ///
  /// - Returns: Whether it fires.
  mutating func expire(at now: Duration) -> Bool

  /// What is pending, if anything, is wanted no more.
  mutating func cancel()

  /// The clock has been set back: what is pending begins to wait anew.
  mutating func restart(at now: Duration)
}
