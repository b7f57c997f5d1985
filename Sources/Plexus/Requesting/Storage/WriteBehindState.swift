/// Decides when changes are written without a call of `flush`: so long after the first one that is not written.
struct WriteBehindState: Hashable, Sendable {
  /// What the timer does when it wakes.
  enum Step: Hashable, Sendable {
    case flushes
    case sleeps(until: Nanoseconds)
    case ends
  }

  /// The shortest time between a write that has failed and the next attempt.
  private static var shortestPause: Nanoseconds { 100_000_000 }

  private let delay: Nanoseconds
  /// When the first of the changes was made that are not written; `nil` if there are none.
  private var firstChange: Nanoseconds?
  /// The time before which nothing is written by itself, after a write that has failed.
  private var pauseEnd = Nanoseconds.min
  private var hasTimer = false

  init(delay: Nanoseconds) {
    self.delay = delay
  }

  /// Notes a change.
  ///
  /// - Returns: Whether a timer has to be started.
  mutating func noteChange(at now: Nanoseconds) -> Bool {
    if firstChange == nil { firstChange = now }
    defer { hasTimer = true }
    return !hasTimer
  }

  /// Notes that a write has failed, which is to be tried again.
  mutating func noteFailure(at now: Nanoseconds) {
    if firstChange == nil { firstChange = now }
    pauseEnd = now.addingSaturating(Self.shortestPause)
  }

  /// Notes that everything that has changed so far is about to be written.
  mutating func beginFlush() {
    firstChange = nil
  }

  /// Decides what a timer does that was started, or has woken.
  mutating func wake(at now: Nanoseconds) -> Step {
    guard let firstChange else {
      hasTimer = false
      return .ends
    }
    let deadline = max(firstChange.addingSaturating(delay), pauseEnd)
    return now < deadline ? .sleeps(until: deadline) : .flushes
  }
}
