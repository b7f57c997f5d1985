internal import PlexusSupport

/// A gate that suspends tasks until a test lets them through.
///
/// Place a gate in the code under test at a point that the test must observe and control:
///
/// ```swift
/// let gate = Gate()
/// let download = Task {
///   try await gate.wait()
///   return "done"
/// }
///
/// await gate.arrivals(1)  // the download is in progress
/// gate.open()
/// let result = try await download.value
/// ```
///
/// A gate can be used from any number of threads and tasks at once. A waiting task keeps its gate alive.
///
/// ## Opening and admitting
///
/// ``open()`` lets all tasks through, waiting and future ones, until ``close()``. ``admit(_:)`` lets the
/// given number of tasks through in order of arrival. Admissions that exceed the number of waiting tasks
/// apply to the tasks that arrive next.
///
/// ## Cancellation
///
/// A task that is cancelled before or during its wait throws `CancellationError` immediately, even if the
/// gate is open. It counts as an arrival and uses no admission.
///
/// ## Topics
///
/// ### Creating a gate
/// - ``init()``
///
/// ### Suspending the code under test
/// - ``wait()``
///
/// ### Waiting in a test
/// - ``arrivals(_:)``
/// - ``arrivalCount``
/// - ``waiterCount``
///
/// ### Resuming tasks
/// - ``open()``
/// - ``admit(_:)``
/// - ``close()``
/// - ``isOpen``
public final class Gate: Sendable {
  private struct State: Leveled {
    var isOpen = false
    var admissions = 0
    var arrivals = 0
    var line = WaitingLine<CheckedContinuation<Void, any Error>>()
    var levelWaiters = LevelWaiters()

    var level: Int { arrivals }
  }

  private let state = Locked(State())

  /// Creates a closed gate.
  public init() {}

  /// Whether the gate lets all tasks through.
  public var isOpen: Bool { state.withLock { $0.isOpen } }

  /// The number of calls of ``wait()`` so far, including calls that have returned.
  public var arrivalCount: Int { state.withLock { $0.arrivals } }

  /// The number of tasks that currently wait.
  public var waiterCount: Int { state.withLock { $0.line.count } }

  /// Waits until the gate is open or this task is admitted.
  ///
  /// - Throws: `CancellationError` if the calling task is cancelled before or during the wait.
  public func wait() async throws {
    let place = state.withLock { $0.line.makePlace() }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        arrive(continuation, at: place)
      }
    } onCancel: {
      let waiter = state.withLock { $0.line.leave(place) }
      waiter?.resume(throwing: CancellationError())
    }
  }

  /// Opens the gate: resumes all waiting tasks in order of arrival and lets later ones through.
  public func open() {
    let waiters = state.withLock { state in
      state.isOpen = true
      return state.line.removeFirst(state.line.count)
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Closes the gate: later tasks wait.
  ///
  /// Unused admissions are discarded.
  public func close() {
    state.withLock { state in
      state.isOpen = false
      state.admissions = 0
    }
  }

  /// Admits a number of tasks: waiting tasks in order of arrival, then the tasks that arrive next.
  ///
  /// Has no effect while the gate is open.
  ///
  /// - Parameter count: The number of tasks to admit.
  /// - Precondition: The count is not negative.
  public func admit(_ count: Int = 1) {
    precondition(count >= 0, "Admit zero or more tasks, not \(count)")
    let waiters = state.withLock { state in
      let waiters = state.line.removeFirst(count)
      let (sum, isTooMany) = state.admissions.addingReportingOverflow(count - waiters.count)
      state.admissions = isTooMany ? .max : sum
      return waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Waits until ``wait()`` has been called a number of times.
  ///
  /// Returns immediately if the count has been reached or the calling task is cancelled.
  ///
  /// - Parameter count: The number of arrivals since the gate was created.
  /// - Precondition: The count is not negative.
  public func arrivals(_ count: Int) async {
    precondition(count >= 0, "Wait for zero or more arrivals, not for \(count)")
    await state.reach(count)
  }

  private func arrive(_ continuation: CheckedContinuation<Void, any Error>, at place: Int) {
    enum Outcome {
      case cancelled
      case passes
      case waits
    }
    var outcome = Outcome.waits
    state.update { state in
      state.arrivals += 1
      // A task that is cancelled after this check is found at its place: `onCancel` takes the lock, too.
      if Task.isCancelled {
        outcome = .cancelled
      } else if state.isOpen {
        outcome = .passes
      } else if state.admissions > 0 {
        state.admissions -= 1
        outcome = .passes
      } else {
        state.line.enter(continuation, at: place)
      }
    }
    switch outcome {
    case .cancelled: continuation.resume(throwing: CancellationError())
    case .passes: continuation.resume()
    case .waits: break
    }
  }
}
