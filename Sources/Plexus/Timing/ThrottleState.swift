/// The rules of throttling: two firings are never closer than an interval.
///
/// Invariants:
///
/// - An interval is open from a firing on, or from a touch that does not fire at once.
/// - A firing is pending only in an open interval, and due at its end.
struct ThrottleState: FiringSchedule {
  private struct Interval {
    var start: Duration
    /// Whether a firing has opened it.
    var followsFiring: Bool
  }

  private let length: Duration
  private let leading: Bool
  private let trailing: Bool
  private var interval: Interval?
  private var isPending = false

  /// Creates the rules; an interval below zero is like zero.
  init(interval: Duration, leading: Bool, trailing: Bool) {
    length = interval.limited
    self.leading = leading
    self.trailing = trailing
  }

  var deadline: Duration? {
    isPending ? interval.map { $0.start + length } : nil
  }

  mutating func postpone(at now: Duration) -> Bool {
    guard isOpen(at: now) else { return false }
    return isPending || !trailing
  }

  mutating func touch(at now: Duration) -> Bool {
    if isOpen(at: now) {
      isPending = trailing
      return false
    }
    interval = Interval(start: now, followsFiring: leading)
    if leading { return true }
    isPending = trailing
    return elapse(at: now)
  }

  mutating func elapse(at now: Duration) -> Bool {
    guard isPending, !isOpen(at: now) else { return false }
    return expire(at: now)
  }

  mutating func expire(at now: Duration) -> Bool {
    guard isPending else { return false }
    isPending = false
    interval = Interval(start: now, followsFiring: true)
    return true
  }

  mutating func cancel() {
    isPending = false
    if interval?.followsFiring == false { interval = nil }
  }

  mutating func restart(at now: Duration) {
    interval?.start = now
  }

  private func isOpen(at now: Duration) -> Bool {
    interval.map { now < $0.start + length } ?? false
  }
}
