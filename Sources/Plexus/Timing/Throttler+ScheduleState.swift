extension Throttler {
  /// The state of a throttler: two firings are at least an interval apart.
  ///
  /// Invariants:
  ///
  /// - An interval begins with a firing, or with a touch that does not fire immediately.
  /// - A firing is pending only after the beginning of an interval, and is due at its end.
  struct ScheduleState: FiringSchedule {
    private struct Interval {
      var start: Duration
      /// Whether the interval began with a firing.
      var followsFiring: Bool
    }

    private let length: Duration
    private let leading: Bool
    private let trailing: Bool
    private var interval: Interval?
    private var isPending = false

    /// Creates the state; a negative interval counts as zero.
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

    mutating func withdrawFiring() {
      if !isPending { interval = nil }
    }

    mutating func restart(at now: Duration) {
      interval?.start = now
    }

    private func isOpen(at now: Duration) -> Bool {
      interval.map { now < $0.start + length } ?? false
    }
  }
}
