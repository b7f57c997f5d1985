/// The synchronous heart of ``SavedState``: whether there is an unsaved change, and when it is due.
///
/// Invariants:
///
/// - At most one write is queued or running.
/// - A failed write is tried again, unless what it has written was cleared meanwhile.
struct SavingState: Hashable, Sendable {
  private enum Work: Hashable, Sendable {
    case none
    case queued
    /// A write of a change that was made at a time.
    case runs(since: Nanoseconds)
    /// A write of what was cleared since it began.
    case runsInVain
  }

  /// The wait after the first failed write, and the longest one.
  private static var shortestPause: Nanoseconds { 1_000_000_000 }
  private static var longestPause: Nanoseconds { 60_000_000_000 }
  /// The number of failed writes in succession after which a released state is given up.
  static var patience: Int { 8 }

  private let delay: Nanoseconds
  /// The time of the first unsaved change, from which the delay is counted.
  private var change: Nanoseconds?
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
  var isUnsaved: Bool { change != nil }

  /// Whether the next write waits because the last one has failed.
  var isPausing: Bool { failures > 0 }

  /// Whether nothing is to be written, now or later.
  var isIdle: Bool { change == nil && work == .none }

  /// The time at which the next write is due; `nil` if there is none, or if one is queued or running.
  var deadline: Nanoseconds? {
    guard let change, work == .none else { return nil }
    return max(isUrgent ? .min : change.addingSaturating(delay), pauseEnd)
  }

  /// The source has changed.
  mutating func noteChange(at now: Nanoseconds) {
    if change == nil { change = now }
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
  mutating func clear() {
    change = nil
    failures = 0
    pauseEnd = .min
    if case .runs = work { work = .runsInVain }
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
  mutating func begin(at now: Nanoseconds) {
    work = .runs(since: change ?? now)
    change = nil
  }

  /// The running write has ended.
  ///
  /// - Parameters:
  ///   - isSaved: Whether it has succeeded.
  ///   - now: The time.
  mutating func finish(isSaved: Bool, at now: Nanoseconds) {
    let former = work
    work = .none
    guard case .runs(let since) = former else { return }
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
    change = since
  }

  /// There is nothing to write, or a newer state has been saved under the same key.
  mutating func giveUp() {
    change = nil
    work = .none
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
