// Unsafe because the checked kind of continuation would allocate for each of many callers. A parked
// task is resumed exactly once: the pure state hands it out once, under the lock.

/// The callers that wait for one event, any of whom may leave early in constant time.
///
/// A caller takes a place first, which counts it, and suspends there afterwards. Whatever happens in
/// between (it is cancelled, or the event comes) is seen when it wants to suspend.
@usableFromInline
final class WaitList: Sendable {
  /// Why a caller does not wait any longer.
  @usableFromInline
  enum Ending: Hashable, Sendable {
    /// The event has come.
    case finished
    /// The caller was cancelled before.
    case left
  }

  private let state = Locked(WaitListState<Parked>())
  /// What is to be as urgent as the most urgent of those who wait.
  private let work: (any Urgent)?

  /// - Parameter work: What is to be as urgent as the most urgent of those who wait, if anything.
  init(raising work: (any Urgent)? = nil) {
    self.work = work
  }

  /// Takes a place for the current caller.
  @usableFromInline
  func join() -> WaitPlace {
    state.withLock { $0.join() }
  }

  /// Waits in a place for the event.
  ///
  /// Whoever waits makes the work that it waits for as urgent as its own task is, also if that becomes
  /// more urgent later.
  ///
  /// - Parameters:
  ///   - place: The place that the caller has taken.
  ///   - onCancel: What to do when the caller's task is cancelled: it has to call ``leave(_:)``. It
  ///     may be called before, during and after the wait.
  /// - Returns: Why the wait is over.
  @usableFromInline
  func wait(in place: WaitPlace, onCancel: @Sendable () -> Void) async -> Ending {
    // What waits is kept for each of many callers: nothing is nested more deeply than it must be, and
    // there is one place only where it is suspended.
    let isFinished = await withTaskCancellationHandler(
      operation: {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else {
          work?.raise(to: Task.currentPriority)
          return await suspend(in: place)
        }
        return await withTaskPriorityEscalationHandler(
          operation: {
            // Whoever makes the task more urgent from now on calls the handler.
            work?.raise(to: Task.currentPriority)
            return await suspend(in: place)
          },
          onPriorityEscalated: { _, priority in work?.raise(to: priority) }
        )
      },
      onCancel: onCancel,
      isolation: #isolation
    )
    // Of many callers nearly all have been told, and need not look.
    return isFinished ? .finished : ending(in: place)
  }

  /// Waits in a place for the event, whether the caller's task is cancelled or not.
  ///
  /// Who calls it sees to it that ``leave(_:)`` is called then.
  ///
  /// - Parameter place: The place that the caller has taken.
  /// - Returns: Why the wait is over.
  func wait(in place: WaitPlace) async -> Ending {
    await suspend(in: place) ? .finished : ending(in: place)
  }

  /// Takes a place and waits there for the event, or until the caller's task is cancelled.
  func wait() async {
    let place = join()
    _ = await wait(in: place) { leave(place).resume() }
  }

  /// Suspends the caller; returns whether the event has come, or else it has to be looked up.
  @inline(__always)
  private func suspend(in place: WaitPlace) async -> Bool {
    await unsafe withUnsafeContinuation(isolation: #isolation) { continuation in
      unsafe park(Parked(continuation: continuation), in: place)
    }
  }

  private func park(_ task: Parked, in place: WaitPlace) {
    let isParked = state.withLock { $0.park(task, in: place) }
    if !isParked { task.resume(isFinished: false) }
  }

  /// Why a caller does not wait any longer, who gives its place back.
  private func ending(in place: WaitPlace) -> Ending {
    state.withLock { $0.giveBack(place) } ? .left : .finished
  }

  /// A caller that waits.
  @safe
  fileprivate struct Parked: Sendable {
    private let continuation: UnsafeContinuation<Bool, Never>

    init(continuation: UnsafeContinuation<Bool, Never>) {
      unsafe self.continuation = continuation
    }

    /// Resumes the caller.
    ///
    /// - Parameter isFinished: Whether the event has come; if not, it looks itself.
    func resume(isFinished: Bool) {
      unsafe continuation.resume(returning: isFinished)
    }
  }

  /// What the departure of a caller has to be followed by, with no lock held.
  struct Departure: Sendable {
    fileprivate var parked: Parked?
    /// Whether the caller was there until now.
    var hasLeft = false
    /// Whether it was the last one.
    var isLast = false

    /// Lets the caller go on, which finds that it has left.
    func resume() {
      parked?.resume(isFinished: false)
    }
  }

  /// A caller leaves, unless the event has come.
  func leave(_ place: WaitPlace) -> Departure {
    state.withLock { state in
      let (hasLeft, parked) = state.leave(place)
      return Departure(
        parked: parked,
        hasLeft: hasLeft,
        isLast: hasLeft && state.count == 0
      )
    }
  }

  /// A caller that has not waited gives its place back.
  func giveBack(_ place: WaitPlace) {
    _ = state.withLock { $0.giveBack(place) }
  }

  /// The event has come: nobody waits any longer.
  func finish() {
    for task in state.withLock({ $0.finish() }) { task.resume(isFinished: true) }
  }

  /// The number of callers that wait.
  var count: Int {
    state.withLock { $0.count }
  }

  /// Whether the event has come.
  var isFinished: Bool {
    state.withLock { $0.isFinished }
  }
}

/// Work that is as urgent as the most urgent of those who wait for it.
@usableFromInline
protocol Urgent: AnyObject, Sendable {
  /// Somebody of the given priority waits from now on.
  func raise(to priority: TaskPriority)
}
