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

  private let state = Locked(WaitListState<SuspendedTask>())

  /// Takes a place for the current caller.
  @usableFromInline
  func join() -> WaitPlace {
    state.withLock { $0.join() }
  }

  /// Waits in a place for the event.
  ///
  /// - Parameters:
  ///   - place: The place that the caller has taken.
  ///   - onCancel: What to do when the caller's task is cancelled: it has to call ``leave(_:)``. It
  ///     may be called before, during and after the wait.
  ///   - onEscalation: What to do when the caller's task becomes more urgent while it waits.
  /// - Returns: Why the wait is over.
  @usableFromInline
  func wait(
    in place: WaitPlace,
    onCancel: @Sendable () -> Void,
    onEscalation: @Sendable (TaskPriority) -> Void
  ) async -> Ending {
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *),
      Task.currentPriority < .high
    {
      await withTaskPriorityEscalationHandler(
        operation: { await suspend(in: place, onCancel: onCancel) },
        onPriorityEscalated: { _, priority in onEscalation(priority) }
      )
    } else {
      await suspend(in: place, onCancel: onCancel)
    }
    return state.withLock { $0.giveBack(place) } ? .left : .finished
  }

  /// Waits in a place for the event, whether the caller's task is cancelled or not.
  ///
  /// Who calls it sees to it that ``leave(_:)`` is called then.
  ///
  /// - Parameter place: The place that the caller has taken.
  /// - Returns: Why the wait is over.
  func wait(in place: WaitPlace) async -> Ending {
    await unsafe withUnsafeContinuation(isolation: #isolation) { continuation in
      let task = unsafe SuspendedTask(continuation: continuation)
      let isParked = state.withLock { $0.park(task, in: place) }
      if !isParked { task.resume() }
    }
    return state.withLock { $0.giveBack(place) } ? .left : .finished
  }

  /// Takes a place and waits there for the event, or until the caller's task is cancelled.
  func wait() async {
    let place = join()
    _ = await wait(in: place, onCancel: { leave(place).resume() }, onEscalation: { _ in })
  }

  private func suspend(in place: WaitPlace, onCancel: @Sendable () -> Void) async {
    await withTaskCancellationHandler(
      operation: {
        // Not through SuspendedTask.suspend: a frame less for each of many callers.
        await unsafe withUnsafeContinuation(isolation: #isolation) { continuation in
          let task = unsafe SuspendedTask(continuation: continuation)
          let isParked = state.withLock { $0.park(task, in: place) }
          if !isParked { task.resume() }
        }
      },
      onCancel: onCancel,
      isolation: #isolation
    )
  }

  /// What the departure of a caller has to be followed by, with no lock held.
  struct Departure: Sendable {
    fileprivate var parked: SuspendedTask?
    /// Whether the caller was there until now.
    var hasLeft = false
    /// Whether it was the last one.
    var isLast = false

    /// Lets the caller go on, which finds that it has left.
    func resume() {
      parked?.resume()
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
    for task in state.withLock({ $0.finish() }) { task.resume() }
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
