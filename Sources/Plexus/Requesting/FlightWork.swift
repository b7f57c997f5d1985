internal import Synchronization

/// The tasks that work for a flight, and how urgent they are.
@usableFromInline
final class FlightWork: Urgent {
  private struct State {
    var priority: TaskPriority?
    var tasks: [Task<Void, Never>] = []
    /// The work of several flights that this one's is part of.
    var batch: FlightBatch?
    var isCancelled = false
    var isFinished = false
  }

  private let state = Locked(State())
  /// The same priority as in the state, for those of many callers who change nothing.
  private let highest = Atomic<UInt8>(0)

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

  /// The work is done by a batch from now on.
  func join(_ batch: FlightBatch) {
    let (isCancelled, priority) = state.withLock { state in
      state.batch = batch
      return (state.isCancelled, state.priority)
    }
    if let priority { batch.work.raise(to: priority) }
    if isCancelled { batch.leave() }
  }

  /// A task has ended.
  func remove(_ task: Task<Void, Never>) {
    state.withLock { state in state.tasks.removeAll { $0 == task } }
  }

  /// Somebody of the given priority waits from now on.
  @usableFromInline
  func raise(to priority: TaskPriority) {
    guard priority.rawValue > highest.load(ordering: .relaxed) else { return }
    let (tasks, batch) = state.withLock { state -> ([Task<Void, Never>], FlightBatch?) in
      if let current = state.priority, current >= priority { return ([], nil) }
      state.priority = priority
      highest.store(priority.rawValue, ordering: .relaxed)
      return (state.tasks, state.batch)
    }
    Self.raise(tasks, to: priority)
    batch?.work.raise(to: priority)
  }

  /// Cancels the flight: every task that works for it, now and later.
  func cancel() {
    let (tasks, batch) = state.withLock { state -> ([Task<Void, Never>], FlightBatch?) in
      let batch = state.isCancelled ? nil : state.batch
      state.isCancelled = true
      return (state.tasks, batch)
    }
    for task in tasks { task.cancel() }
    batch?.leave()
  }

  /// The flight has ended.
  ///
  /// - Returns: The batch that it was part of until now, which is to be told.
  @discardableResult
  func finish() -> FlightBatch? {
    let (tasks, batch, isCancelled) = state.withLock { state in
      state.isFinished = true
      let rest = (state.tasks, state.batch, state.isCancelled)
      state.tasks = []
      state.batch = nil
      return rest
    }
    withExtendedLifetime(tasks) {}
    return isCancelled ? nil : batch
  }

  /// Waiting for a task is what raises its priority.
  private static func raise(_ tasks: [Task<Void, Never>], to priority: TaskPriority) {
    for task in tasks {
      Task.detached(priority: priority) { await task.value }
    }
  }
}
