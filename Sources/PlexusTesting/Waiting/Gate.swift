internal import PlexusSupport

/// A gate that holds tasks until a test lets them through.
///
/// Put one into the code under test where a test has to know that it has got there, and to decide
/// when it goes on:
///
/// ```swift
/// let gate = Gate()
/// let download = Task {
///   try await gate.wait()
///   return "done"
/// }
///
/// await gate.arrivals(1)  // the download is under way
/// gate.open()
/// let result = try await download.value
/// ```
///
/// A gate may be used from any number of threads and tasks at once. A task that waits keeps its
/// gate alive.
///
/// ## Letting through some, or all
///
/// ``open()`` lets everybody through, now and later, until ``close()``. ``admit(_:)`` lets through
/// as many as it is told, in order of arrival, and remembers what it could not use yet for those
/// who arrive later.
///
/// ## Cancellation
///
/// A task that is cancelled while it waits, or before, throws `CancellationError` at once, however
/// wide the gate is open. It has arrived all the same, and uses up no admission.
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

  /// Whether everybody is let through.
  public var isOpen: Bool { state.withLock { $0.isOpen } }

  /// The number of calls of ``wait()`` so far, whether they still wait or not.
  public var arrivalCount: Int { state.withLock { $0.arrivals } }

  /// The number of tasks that the gate holds at this moment.
  public var waiterCount: Int { state.withLock { $0.line.count } }

  /// Waits until the gate is open or this task is admitted.
  ///
  /// - Throws: `CancellationError` as soon as the calling task is cancelled, also if it already is.
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

  /// Lets everybody through who waits, in order of arrival, and everybody who arrives later.
  public func open() {
    let waiters = state.withLock { state in
      state.isOpen = true
      return state.line.removeFirst(state.line.count)
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Closes the gate: those who arrive from now on wait.
  ///
  /// Admissions that nobody has used are forgotten.
  public func close() {
    state.withLock { state in
      state.isOpen = false
      state.admissions = 0
    }
  }

  /// Lets through so many tasks: those who wait, in order of arrival, then those who arrive next.
  ///
  /// An open gate admits everybody anyway, and then there is nothing to remember.
  ///
  /// - Parameter count: How many to let through.
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

  /// Waits until ``wait()`` has been called so many times, by tasks that still wait or do not.
  ///
  /// Returns at once if it already has, and when the calling task is cancelled.
  ///
  /// - Parameter count: The number of arrivals since the gate was made.
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
      // A task that is cancelled from here on finds its place: the handler needs the lock.
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
