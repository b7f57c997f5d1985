/// The synchronous heart of ``SavedState``: which change is not saved yet, and when it is due.
///
/// Invariants:
///
/// - At most one write is queued or running.
/// - A change from before the newest clear is never written; clears are counted, and each count is a period.
struct SavingState: Hashable, Sendable {
  /// A change that is not saved.
  private struct Change: Hashable, Sendable {
    /// The time of the first unsaved change, from which the delay is counted.
    var time: Nanoseconds
    /// The period in which it was made.
    var period: Int
  }

  private enum Work: Hashable, Sendable {
    case none
    case queued
    case runs(Change)
  }

  /// The wait after the first failed write, and the longest one.
  private static var shortestPause: Nanoseconds { 1_000_000_000 }
  private static var longestPause: Nanoseconds { 60_000_000_000 }
  /// The number of failed writes in succession after which a released state is given up.
  static var patience: Int { 8 }

  private let delay: Nanoseconds
  private var change: Change?
  private var work = Work.none
  /// The number of failed writes in succession, and the end of the wait after the last one.
  private var failures = 0
  private var pauseEnd = Nanoseconds.min
  /// Whether a change is due at once, because the source has ended or the saved state was released.
  private(set) var isUrgent = false
  private var isReleased = false

  init(delay: Nanoseconds) {
    self.delay = max(delay, 0)
  }

  /// Whether a change is known that is not saved.
  func isUnsaved(in period: Int) -> Bool { change?.period == period }

  /// Whether the next write waits because the last one has failed.
  var isPausing: Bool { failures > 0 }

  /// Whether nothing is to be written, now or later.
  var isIdle: Bool { change == nil && work == .none }

  /// The time at which the next write is due; `nil` if there is none, or if one is queued or running.
  var deadline: Nanoseconds? {
    guard let change, work == .none else { return nil }
    return max(isUrgent ? .min : change.time.addingSaturating(delay), pauseEnd)
  }

  /// The source has changed.
  mutating func noteChange(at now: Nanoseconds, in period: Int) {
    if change?.period == period { return }
    change = Change(time: now, period: period)
  }

  /// The source has ended: it changes no more.
  mutating func endSource() {
    isUrgent = true
  }

  /// The saved state is released: what is unsaved is written at once.
  mutating func release() {
    isUrgent = true
    isReleased = true
    failures = 0
    pauseEnd = .min
  }

  /// Everything so far is cleared: nothing is written before the next change.
  mutating func clear(_ period: Int) {
    if let change, change.period < period { self.change = nil }
    failures = 0
    pauseEnd = .min
  }

  /// Takes the write that is due.
  ///
  /// - Returns: Whether there is one, to be queued.
  mutating func takeDue(at now: Nanoseconds) -> Bool {
    guard let deadline, deadline <= now else { return false }
    work = .queued
    return true
  }

  /// A write begins, whether it was due or is requested.
  ///
  /// - Returns: Whether anything is to be written.
  mutating func begin(in period: Int) -> Bool {
    work = .none
    guard let change else { return false }
    self.change = nil
    guard change.period == period else { return false }
    work = .runs(change)
    return true
  }

  /// The running write has ended.
  ///
  /// - Parameters:
  ///   - isSaved: Whether it has succeeded.
  ///   - now: The time.
  ///   - period: The current period.
  mutating func finish(isSaved: Bool, at now: Nanoseconds, in period: Int) {
    guard case .runs(let written) = work else { return }
    work = .none
    guard written.period == period else { return }
    guard !isSaved else {
      failures = 0
      pauseEnd = .min
      return
    }
    failures += 1
    guard !isReleased || failures < Self.patience else {
      change = nil
      return
    }
    pauseEnd = now.addingSaturating(pause)
    if change?.period != period { change = written }
  }

  /// Gives up what is unsaved, because a newer state has been saved under the same key.
  mutating func giveUp() {
    change = nil
  }

  /// The wait after the last failed write.
  private var pause: Nanoseconds {
    var pause = min(max(delay, Self.shortestPause), Self.longestPause)
    for _ in 1..<max(failures, 1) where pause < Self.longestPause {
      pause = min(2 * pause, Self.longestPause)
    }
    return pause
  }
}
