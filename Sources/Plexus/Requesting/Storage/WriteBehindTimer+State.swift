extension WriteBehindTimer {
  /// The schedule of writes without a call of `flush`: a delay after the first unwritten change.
  struct State: Hashable, Sendable {
    /// The next step of the timer.
    enum Step: Hashable, Sendable {
      case flushes
      case sleeps(until: Nanoseconds)
      case ends
    }

    /// The shortest time between a write that has failed and the next attempt.
    private static var shortestPause: Nanoseconds { 100_000_000 }

    private let delay: Nanoseconds
    /// The time of the first unwritten change; `nil` if there is none.
    private var firstChange: Nanoseconds?
    /// The time before which the timer writes nothing, after a failed write.
    private var pauseEnd = Nanoseconds.min
    private var hasTimer = false

    init(delay: Nanoseconds) {
      self.delay = delay
    }

    /// Records a change.
    ///
    /// - Returns: Whether a timer has to be started.
    mutating func noteChange(at now: Nanoseconds) -> Bool {
      if firstChange == nil { firstChange = now }
      defer { hasTimer = true }
      return !hasTimer
    }

    /// Records a failed write, which is retried.
    mutating func noteFailure(at now: Nanoseconds) {
      if firstChange == nil { firstChange = now }
      pauseEnd = now.addingSaturating(Self.shortestPause)
    }

    /// Records that all changes so far are about to be written.
    mutating func beginFlush() {
      firstChange = nil
    }

    /// Returns the next step of a timer that was started or has woken.
    mutating func wake(at now: Nanoseconds) -> Step {
      guard let firstChange else {
        hasTimer = false
        return .ends
      }
      let deadline = max(firstChange.addingSaturating(delay), pauseEnd)
      return now < deadline ? .sleeps(until: deadline) : .flushes
    }
  }
}
