/// A task that can be cancelled before it has been created.
///
/// The slot is stored where the lock of its owner guards it; the task is created and cancelled with no lock held.
final class TaskSlot: Sendable {
  private struct State {
    var task: Task<Void, Never>?
    var isCancelled = false
  }

  private let state = Locked(State())

  init() {}

  /// Creates the task; called at most once.
  ///
  /// - Parameter make: Creates the task, which is cancelled at once if the slot was cancelled before.
  func start(_ make: () -> Task<Void, Never>) {
    let task = make()
    let isCancelled = state.withLock { state in
      if !state.isCancelled { state.task = task }
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
  }

  /// Cancels the task, which can be created later.
  func cancel() {
    let task = state.withLock { state in
      state.isCancelled = true
      return state.task.take()
    }
    task?.cancel()
  }
}
