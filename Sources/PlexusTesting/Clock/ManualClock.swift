internal import PlexusSupport

/// A clock that stands still until a test moves it.
///
/// Code that takes an `any Clock<Duration>` sleeps on it as on any other clock. The test decides
/// when the time comes, and the clock tells it when the code under test is asleep, so that no test
/// has to sleep, to yield or to hope:
///
/// ```swift
/// let clock = ManualClock()
/// let reminder = Task {
///   try await clock.sleep(for: .seconds(60))
///   return "Stand up"
/// }
///
/// await clock.sleepers(1)  // the task sleeps
/// clock.advance(by: .seconds(60))  // and now it does not
/// let text = try await reminder.value
/// ```
///
/// The clock may be used from any number of threads and tasks at once.
///
/// ## Moving the time
///
/// ``advance(by:)`` moves the time in one step and removes everybody whose deadline is not after
/// the new time, soonest deadline first, and in order of arrival where deadlines are equal. When
/// it returns they no longer count as sleeping. They have been resumed in that order; in which
/// order they then *run* is up to their executors, unless they share an actor of equal priority.
///
/// The time does not stop at the deadlines in between: a task that wakes sees the time to which
/// the clock was moved, never one before its deadline. A loop that sleeps for a second and is to
/// tick five times needs five advances, with ``sleepers(_:)`` before each:
///
/// ```swift
/// for _ in 1...5 {
///   await clock.sleepers(1)
///   clock.advance(by: .seconds(1))
/// }
/// ```
///
/// ``run()`` goes from deadline to deadline instead, until nobody sleeps, and ``run(_:)`` does so
/// until an operation has ended.
///
/// ## Cancellation
///
/// A task that is cancelled while it sleeps, or before, throws `CancellationError` at once and no
/// longer counts as sleeping. A task that is cancelled while it waits in ``sleepers(_:)`` returns
/// from there.
public final class ManualClock: Clock, Sendable {
  private struct State: Leveled {
    var now = Instant()
    var sleepers = DeadlineQueue<CheckedContinuation<Void, any Error>>()
    var levelWaiters = LevelWaiters()
    var lastID = 0

    var level: Int { sleepers.count }
  }

  private let state = Locked(State())

  /// Creates a clock that stands at its start.
  public init() {}

  /// The time to which the clock has been moved.
  public var now: Instant { state.withLock { $0.now } }

  /// The smallest step that the clock can be moved by: an attosecond.
  public var minimumResolution: Duration {
    Duration(secondsComponent: 0, attosecondsComponent: 1)
  }

  /// The number of tasks that sleep at this moment.
  public var sleeperCount: Int { state.withLock { $0.sleepers.count } }

  /// The deadline of the task that would wake first, or `nil` if nobody sleeps.
  public var nextDeadline: Instant? { state.withLock { $0.sleepers.earliestDeadline } }

  /// Sleeps until the clock has been moved to the deadline or beyond.
  ///
  /// A deadline that is not after ``now`` returns at once. It wakes exactly when the clock is
  /// moved that far: the tolerance is not used.
  ///
  /// - Parameters:
  ///   - deadline: The time to sleep until.
  ///   - tolerance: Ignored.
  /// - Throws: `CancellationError` as soon as the calling task is cancelled, also if it already is.
  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    let id = state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        register(continuation, deadline: deadline, id: id)
      }
    } onCancel: {
      let sleeper = state.withLock { $0.sleepers.remove(id: id) }
      sleeper?.resume(throwing: CancellationError())
    }
  }

  /// Moves the clock forward, and wakes everybody whose deadline has come.
  ///
  /// - Parameter duration: How far to move it. Zero wakes nobody: there are no sleepers whose
  ///   deadline is not after ``now``.
  /// - Precondition: The duration is not negative.
  public func advance(by duration: Duration) {
    precondition(
      duration >= .zero,
      "A manual clock cannot move backwards: advance it by zero or more, not by \(duration)"
    )
    advance { $0.advanced(by: duration) }
  }

  /// Moves the clock forward to an instant, and wakes everybody whose deadline has come.
  ///
  /// - Parameter instant: The time to move it to.
  /// - Precondition: The instant is not before ``now``.
  public func advance(to instant: Instant) {
    advance { now in
      precondition(
        instant >= now,
        "A manual clock cannot move backwards: it stands at \(now), which is after \(instant)"
      )
      return instant
    }
  }

  /// Moves the clock from deadline to deadline until nobody sleeps.
  ///
  /// It stands still at every deadline on its way, so that those who are due there are resumed
  /// before it goes on, and comes to rest at the last one. Whoever goes to sleep while it runs is
  /// woken, too; whoever does so after it has returned sleeps on. A task that was woken may need some
  /// time to get to its next sleep: where there are several in a row, use ``run(_:)``. Among many tasks
  /// that sleep again and again there may always be one that sleeps, and then it does not return.
  public func run() {
    while step() {}
  }

  /// Carries out an operation, and moves the clock to the next deadline whenever somebody sleeps.
  ///
  /// Nobody has to know how often the operation sleeps, and for how long:
  ///
  /// ```swift
  /// let clock = ManualClock()
  /// try await clock.run {
  ///   for attempt in 1...5 { try await clock.sleep(for: .seconds(attempt)) }
  /// }
  /// print(clock.now.offset)  // 15 seconds
  /// ```
  ///
  /// Others who sleep on the clock are woken, too, as long as the operation goes on and no longer.
  ///
  /// The clock does not wait until everybody sleeps who is going to. Where two tasks sleep at the
  /// same time, the order in which they get to it decides which deadline comes first.
  ///
  /// - Parameter operation: What sleeps on the clock. It runs where the caller does.
  /// - Returns: What the operation returns. The clock stands still again.
  /// - Throws: What the operation throws.
  public func run<Value, Failure: Error>(
    _ operation: nonisolated(nonsending) () async throws(Failure) -> Value
  ) async throws(Failure) -> Value {
    let driver = Task {
      while !Task.isCancelled {
        await sleepers(1)
        // One deadline at a time: others may sleep so often that there is always somebody.
        if !Task.isCancelled { step() }
        // Where there is one thread, those who were woken need it, too.
        await hop()
      }
    }
    let result: Result<Value, Failure>
    do throws(Failure) {
      result = .success(try await operation())
    } catch {
      result = .failure(error)
    }
    driver.cancel()
    await driver.value
    return try result.get()
  }

  /// Waits until at least so many tasks sleep on the clock at once.
  ///
  /// Returns at once if they already do, and when the calling task is cancelled.
  ///
  /// - Parameter count: The number of sleeping tasks to wait for.
  /// - Precondition: The count is not negative.
  public func sleepers(_ count: Int) async {
    precondition(count >= 0, "Wait for zero or more sleepers, not for \(count)")
    await state.reach(count)
  }

  /// Moves the clock to the next deadline.
  ///
  /// - Returns: Whether anybody slept.
  @discardableResult
  private func step() -> Bool {
    let due = state.withLock { state -> [CheckedContinuation<Void, any Error>] in
      guard let deadline = state.sleepers.earliestDeadline else { return [] }
      state.now = max(state.now, deadline)
      return state.sleepers.removeAll(dueAt: state.now)
    }
    for sleeper in due { sleeper.resume() }
    return !due.isEmpty
  }

  private func register(
    _ continuation: CheckedContinuation<Void, any Error>,
    deadline: Instant,
    id: Int
  ) {
    enum Outcome {
      case cancelled
      case due
      case sleeps([CheckedContinuation<Void, Never>])
    }
    let outcome = state.withLock { state -> Outcome in
      // A task that is cancelled from here on finds its sleeper: the handler needs the lock.
      guard !Task.isCancelled else { return .cancelled }
      guard deadline > state.now else { return .due }
      state.sleepers.insert(continuation, deadline: deadline, id: id)
      return .sleeps(state.levelWaiters.removeAll(upTo: state.level))
    }
    switch outcome {
    case .cancelled: continuation.resume(throwing: CancellationError())
    case .due: continuation.resume()
    case .sleeps(let watchers): for watcher in watchers { watcher.resume() }
    }
  }

  private func advance(_ move: (Instant) -> Instant) {
    let due = state.withLock { state in
      state.now = move(state.now)
      return state.sleepers.removeAll(dueAt: state.now)
    }
    for sleeper in due { sleeper.resume() }
  }
}
