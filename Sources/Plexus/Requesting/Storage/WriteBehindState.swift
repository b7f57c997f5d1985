/// Decides when changes are written without a call of `flush`: so long after the first one that is not written.
struct WriteBehindState: Hashable, Sendable {
  /// What the timer does when it wakes.
  enum Step: Hashable, Sendable {
    case flushes
    case sleeps(until: Nanoseconds)
    case ends
  }

  private let delay: Nanoseconds
  /// When the first of the changes was made that are not written; `nil` if there are none.
  private var firstChange: Nanoseconds?
  private var hasTimer = false

  init(delay: Nanoseconds) {
    self.delay = delay
  }

  /// Notes a change, or that a write has failed and is to be tried again.
  ///
  /// - Returns: Whether a timer has to be started.
  mutating func noteChange(at now: Nanoseconds) -> Bool {
    if firstChange == nil { firstChange = now }
    defer { hasTimer = true }
    return !hasTimer
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
    let deadline = firstChange.addingSaturating(delay)
    return now < deadline ? .sleeps(until: deadline) : .flushes
  }
}
