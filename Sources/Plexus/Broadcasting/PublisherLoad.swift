internal import Synchronization

/// One run of an operation that loads a value, and the tasks that wait for it.
final class PublisherLoad<Value: Sendable>: Sendable {
  private struct State {
    var outcome: Result<Value, any Error>?
    var parked = ParkedWaiters()
    var callers = 0
    var task: Task<Void, Never>?
    var isAbandoned = false
  }

  /// What a departure leaves to be done without a lock.
  struct Departure: Sendable {
    /// The caller, if it was parked.
    var parked: Waiter?
    /// Whether nobody waits any more.
    var isLast = false
    /// The task to cancel.
    var task: Task<Void, Never>?
  }

  let id: LoadID
  /// A number that no other load of any publisher has or will have.
  let identity = UniqueID.next()
  private let state = Locked(State())

  init(id: LoadID) {
    self.id = id
  }

  /// Adds a caller.
  func join() -> Waiter {
    state.withLock { state in
      state.callers += 1
      return Waiter(id: state.callers)
    }
  }

  /// Starts the operation.
  ///
  /// - Parameters:
  ///   - operation: What to run, in a task of its own.
  ///   - completion: What to do with the result.
  func start(
    _ operation: @escaping @concurrent @Sendable () async throws -> Value,
    completion: @escaping @Sendable (Result<Value, any Error>) -> Void
  ) {
    // Of the caller's task-local values only these go along, lest the operation wait for itself.
    let flight = FlightScope.current
    let enclosing = LoadContext.enclosing.union([identity])
    let task = Task.detached(priority: Task.currentPriority) {
      let result: Result<Value, any Error>
      do {
        let value = try await FlightScope.$current.withValue(flight) {
          try await LoadContext.$enclosing.withValue(enclosing, operation: operation)
        }
        result = .success(value)
      } catch {
        result = .failure(error)
      }
      completion(result)
    }
    let isAbandoned = state.withLock { state in
      if !state.isAbandoned, state.outcome == nil { state.task = task }
      return state.isAbandoned
    }
    if isAbandoned { task.cancel() }
  }

  /// Waits for the outcome.
  ///
  /// - Parameters:
  ///   - waiter: The caller, as it joined.
  ///   - onCancel: What to do when the task of the caller is cancelled.
  /// - Returns: The value.
  /// - Throws: The error of the operation, or a `CancellationError` if the caller has left.
  func wait(_ waiter: Waiter, onCancel: @escaping @Sendable () -> Void) async throws -> Value {
    await withTaskCancellationHandler(
      operation: {
        await SuspendedTask.suspend(isolation: #isolation) { task in
          let isParked = state.withLock { state in
            guard !waiter.isCancelled.load(ordering: .relaxed), state.outcome == nil else {
              return false
            }
            state.parked.park(waiter, task: task)
            return true
          }
          if !isParked { task.resume() }
        }
      },
      onCancel: onCancel,
      isolation: #isolation
    )
    guard
      let outcome = state.withLock({
        waiter.isCancelled.load(ordering: .relaxed) ? nil : $0.outcome
      })
    else {
      throw CancellationError()
    }
    return try outcome.get()
  }

  /// Takes a caller out whose task was cancelled, unless the outcome is there already.
  func leave(_ waiter: Waiter) -> Departure {
    state.withLock { state in
      guard state.outcome == nil, !waiter.isCancelled.load(ordering: .relaxed) else {
        return Departure()
      }
      waiter.isCancelled.store(true, ordering: .relaxed)
      state.callers -= 1
      var departure = Departure()
      if state.parked.remove(waiter) { departure.parked = waiter }
      if state.callers == 0 {
        departure.isLast = true
        state.isAbandoned = true
        departure.task = state.task
        state.task = nil
      }
      return departure
    }
  }

  /// Records the outcome.
  ///
  /// - Returns: The callers to resume without a lock.
  func finish(_ outcome: Result<Value, any Error>) -> ContiguousArray<ParkedTask> {
    state.withLock { state in
      state.outcome = outcome
      state.task = nil
      return state.parked.removeAll()
    }
  }
}

/// For whose operations a task works.
enum LoadContext {
  @TaskLocal static var enclosing: Set<UInt64> = []
}
