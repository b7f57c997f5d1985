/// The tasks that work for a flight, and how urgent they are.
@usableFromInline
final class FlightWork: Sendable {
  private struct State {
    var priority: TaskPriority?
    var tasks: [Task<Void, Never>] = []
    var isCancelled = false
    var isFinished = false
  }

  private let state = Locked(State())

  /// The highest priority of all who have waited so far.
  var priority: TaskPriority? {
    state.withLock { $0.priority }
  }

  /// Whether the flight was cancelled.
  var isCancelled: Bool {
    state.withLock { $0.isCancelled }
  }

  /// Starts a task for the flight, with the priority of those who wait.
  ///
  /// It inherits nothing from the current task. It is cancelled at once if the flight is.
  ///
  /// - Parameter operation: What to do.
  /// - Returns: The task.
  @discardableResult
  func start(_ operation: @escaping @concurrent @Sendable () async -> Void) -> Task<Void, Never> {
    let priority = priority
    let task = Task.detached(priority: priority, operation: operation)
    let (isCancelled, current) = state.withLock { state in
      if !state.isFinished { state.tasks.append(task) }
      return (state.isCancelled, state.priority)
    }
    if isCancelled { task.cancel() }
    if let current, current > priority ?? .background { Self.raise([task], to: current) }
    return task
  }

  /// A task has ended.
  func remove(_ task: Task<Void, Never>) {
    state.withLock { state in state.tasks.removeAll { $0 == task } }
  }

  /// Somebody of the given priority waits from now on.
  @usableFromInline
  func raise(to priority: TaskPriority) {
    let tasks = state.withLock { state -> [Task<Void, Never>] in
      if let current = state.priority, current >= priority { return [] }
      state.priority = priority
      return state.tasks
    }
    Self.raise(tasks, to: priority)
  }

  /// Cancels the flight: every task that works for it, now and later.
  func cancel() {
    let tasks = state.withLock { state -> [Task<Void, Never>] in
      state.isCancelled = true
      return state.tasks
    }
    for task in tasks { task.cancel() }
  }

  /// The flight has ended.
  func finish() {
    let tasks = state.withLock { state -> [Task<Void, Never>] in
      state.isFinished = true
      let tasks = state.tasks
      state.tasks = []
      return tasks
    }
    withExtendedLifetime(tasks) {}
  }

  /// Waiting for a task is what raises its priority.
  private static func raise(_ tasks: [Task<Void, Never>], to priority: TaskPriority) {
    for task in tasks {
      Task.detached(priority: priority) { await task.value }
    }
  }
}
