extension Debouncer {
  /// The state of a debouncer: a firing follows the last of several touches.
  ///
  /// Invariants:
  ///
  /// - A firing is pending from a touch until it fires or is cancelled.
  /// - It is due when the delay has passed since the last touch, or the maximum delay since the first touch
  ///   that it answers.
  struct ScheduleState: FiringSchedule {
    private struct Pending {
      /// The first unanswered touch.
      var since: Duration
      var deadline: Duration
    }

    private let delay: Duration
    private let maximumDelay: Duration?
    private let leading: Bool
    private var pending: Pending?
    private var lastTouch: Duration?

    /// Creates the state; negative delays count as zero.
    init(delay: Duration, maximumDelay: Duration?, leading: Bool) {
      self.delay = delay.limited
      self.maximumDelay = maximumDelay?.limited
      self.leading = leading
    }

    var deadline: Duration? { pending?.deadline }

    mutating func postpone(at now: Duration) -> Bool {
      guard let pending, now < pending.deadline else { return false }
      lastTouch = now
      let deadline = deadline(now, since: pending.since)
      self.pending?.deadline = deadline
      return true
    }

    mutating func touch(at now: Duration) -> Bool {
      let isQuiet = lastTouch.map { now - $0 >= delay } ?? true
      lastTouch = now
      if leading, isQuiet, pending == nil { return true }
      let since = pending?.since ?? now
      pending = Pending(since: since, deadline: deadline(now, since: since))
      return elapse(at: now)
    }

    /// Whether a firing is pending and due.
    func isDue(at now: Duration) -> Bool {
      pending.map { $0.deadline <= now } ?? false
    }

    mutating func elapse(at now: Duration) -> Bool {
      guard isDue(at: now) else { return false }
      pending = nil
      return true
    }

    mutating func expire(at now: Duration) -> Bool {
      guard pending != nil else { return false }
      pending = nil
      return true
    }

    /// Drops the pending firing and restarts the quiet time.
    mutating func withdraw(at now: Duration) {
      pending = nil
      lastTouch = now
    }

    mutating func cancel() {
      pending = nil
      lastTouch = nil
    }

    mutating func withdrawFiring() {
      // The quiet time counts from touches, not from firings.
    }

    mutating func restart(at now: Duration) {
      lastTouch = lastTouch.map { _ in now }
      if pending != nil { pending = Pending(since: now, deadline: deadline(now, since: now)) }
    }

    private func deadline(_ lastTouch: Duration, since first: Duration) -> Duration {
      let quiet = lastTouch + delay
      return maximumDelay.map { min(quiet, first + $0) } ?? quiet
    }
  }
}
