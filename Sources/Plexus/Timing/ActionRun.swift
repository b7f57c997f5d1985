// @unchecked Sendable: all mutable state is atomic or behind a lock.

internal import Synchronization

/// One run of an action, which tasks can wait for.
///
/// The tasks of the action carry it as a task-local value, to detect a fetch and an action that wait for each
/// other.
final class ActionRun: WaitNode, @unchecked Sendable {
  private let waiters = WaitList()
  private let hasEnded = Atomic<Bool>(false)
  private let previous: Locked<ActionRun?>

  /// - Parameter previous: The run that must end before this one begins, if any.
  init(after previous: ActionRun?) {
    self.previous = Locked(previous)
    super.init()
  }

  override var predecessor: WaitNode? { previous.withLock { $0 } }

  override var isSettled: Bool { hasEnded.load(ordering: .acquiring) }

  /// Waits for the end of the run, or until the calling task is cancelled.
  ///
  /// Returns immediately if the run waits for the fetch that the calling task belongs to.
  func wait() async {
    guard let scope = WaitScope.awaited else { return await waiters.wait() }
    guard WaitGraph.wait(scope, for: self) == nil else { return }
    await waiters.wait()
    WaitGraph.stopWaiting(scope, for: self)
  }

  /// Marks the run as ended or cancelled.
  func finish() {
    hasEnded.store(true, ordering: .releasing)
    previous.release { $0.take() }
    waiters.finish()
  }
}
