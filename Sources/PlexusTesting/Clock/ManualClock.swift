internal import PlexusSupport

/// A clock whose time changes only when a test advances it.
///
/// Code that takes an `any Clock<Duration>` sleeps on a manual clock as on any other clock. The test
/// controls the time and can wait until the code under test sleeps, so it needs no real sleeps and no
/// yielding:
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
/// A clock can be used from any number of threads and tasks at once.
///
/// ## Advancing the time
///
/// ``advance(by:)`` moves the time in one step and resumes the tasks whose deadline has been reached, in the
/// order of their deadlines, and in order of arrival for equal deadlines. When it returns, these tasks no
/// longer count as sleeping. The order in which the resumed tasks *run* is up to their executors, unless
/// they share an actor and have equal priority.
///
/// The clock does not stop at intermediate deadlines: a task that wakes reads the time to which the clock
/// was advanced, which is never before its deadline. A loop that sleeps for one second per iteration and
/// should run five times needs five advances, with ``sleepers(_:)`` before each:
///
/// ```swift
/// for _ in 1...5 {
///   await clock.sleepers(1)
///   clock.advance(by: .seconds(1))
/// }
/// ```
///
/// ``run()`` advances from deadline to deadline until no task sleeps; ``run(_:)`` does so until an
/// operation returns.
///
/// ## Cancellation
///
/// A task that is cancelled before or during its sleep throws `CancellationError` immediately and no longer
/// counts as sleeping. A task that is cancelled while it waits in ``sleepers(_:)`` returns immediately.
///
/// ## Topics
///
/// ### Creating a clock
/// - ``init()``
///
/// ### Advancing
/// - ``advance(by:)``
/// - ``advance(to:)``
/// - ``run()``
/// - ``run(_:)``
///
/// ### Waiting for sleepers
/// - ``sleepers(_:)``
/// - ``sleeperCount``
/// - ``nextDeadline``
///
/// ### Sleeping and reading the time
/// - ``sleep(until:tolerance:)``
/// - ``now``
/// - ``minimumResolution``
/// - ``Instant``
public final class ManualClock: Clock, Sendable {
  private struct State: Leveled {
    var now = Instant()
    var sleepers = DeadlineQueue<CheckedContinuation<Void, any Error>>()
    var levelWaiters = LevelWaiters()
    var lastID = 0

    var level: Int { sleepers.count }
  }

  private let state = Locked(State())

  /// Creates a clock at the instant zero.
  public init() {}

  /// The current time of the clock.
  public var now: Instant { state.withLock { $0.now } }

  /// The smallest possible step: an attosecond.
  public var minimumResolution: Duration {
    Duration(secondsComponent: 0, attosecondsComponent: 1)
  }

  /// The number of tasks that currently sleep on the clock.
  public var sleeperCount: Int { state.withLock { $0.sleepers.count } }

  /// The earliest deadline of a sleeping task, or `nil` if no task sleeps.
  public var nextDeadline: Instant? { state.withLock { $0.sleepers.earliestDeadline } }

  /// Suspends the task until the clock reaches the deadline.
  ///
  /// Returns immediately if the deadline is not after ``now``. The tolerance is not used.
  ///
  /// - Parameters:
  ///   - deadline: The time to sleep until.
  ///   - tolerance: Ignored.
  /// - Throws: `CancellationError` if the calling task is cancelled before or during the sleep.
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

  /// Advances the clock by a duration and resumes the tasks whose deadline is reached.
  ///
  /// - Parameter duration: The duration to advance by. Zero resumes no task.
  /// - Precondition: The duration is not negative.
  public func advance(by duration: Duration) {
    precondition(
      duration >= .zero,
      "A manual clock cannot move backwards: advance it by zero or more, not by \(duration)"
    )
    advance { $0.advanced(by: duration) }
  }

  /// Advances the clock to an instant and resumes the tasks whose deadline is reached.
  ///
  /// - Parameter instant: The instant to advance to.
  /// - Precondition: The instant is not before ``now``.
  public func advance(to instant: Instant) {
    advance { now in
      precondition(
        instant >= now,
        "A manual clock cannot move backwards: the current time \(now) is after \(instant)"
      )
      return instant
    }
  }

  /// Advances the clock from deadline to deadline until no task sleeps.
  ///
  /// The clock stops at every deadline, resumes the tasks that are due and then continues. A task that
  /// begins to sleep while this method runs is resumed, too; one that begins later is not. A resumed task
  /// needs some time to reach its next sleep: use ``run(_:)`` for code that sleeps repeatedly.
  /// This method does not return while tasks keep sleeping in loops.
  public func run() {
    while step() {}
  }

  /// Runs an operation and advances the clock to the next deadline whenever a task sleeps.
  ///
  /// The caller does not need the number or the lengths of the operation's sleeps:
  ///
  /// ```swift
  /// let clock = ManualClock()
  /// try await clock.run {
  ///   for attempt in 1...5 { try await clock.sleep(for: .seconds(attempt)) }
  /// }
  /// print(clock.now.offset)  // 15.0 seconds
  /// ```
  ///
  /// Other tasks that sleep on the clock are resumed, too, until the operation returns.
  ///
  /// The clock does not wait for all tasks to sleep before it advances. If two tasks are about to
  /// sleep, the order in which they reach their sleeps determines which deadline comes first.
  ///
  /// - Parameter operation: The operation, which runs in the caller's isolation.
  /// - Returns: The result of the operation.
  /// - Throws: The error of the operation.
  public func run<Value, Failure: Error>(
    _ operation: nonisolated(nonsending) () async throws(Failure) -> Value
  ) async throws(Failure) -> Value {
    let driver = Task {
      while !Task.isCancelled {
        await sleepers(1)
        // One deadline at a time: tasks that sleep in loops could keep `run()` from returning.
        if !Task.isCancelled { step() }
        // On a single thread, the resumed tasks need it to run.
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

  /// Waits until at least a number of tasks sleep on the clock at the same time.
  ///
  /// Returns immediately if they already do or the calling task is cancelled.
  ///
  /// - Parameter count: The number of sleeping tasks.
  /// - Precondition: The count is not negative.
  public func sleepers(_ count: Int) async {
    precondition(count >= 0, "Wait for zero or more sleepers, not for \(count)")
    await state.reach(count)
  }

  /// Advances the clock to the next deadline.
  ///
  /// - Returns: Whether a task was resumed.
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
      // A task that is cancelled after this check finds its sleeper: `onCancel` takes the lock, too.
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
