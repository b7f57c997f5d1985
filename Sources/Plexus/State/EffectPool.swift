/// The effects of a store that are under way; they end with it.
@usableFromInline
final class EffectPool: Sendable {
  private struct State: Sendable {
    /// `nil` while the task is being made.
    var tasks: [Int: Task<Void, Never>?] = [:]
    var lastID = 0
    var isClosed = false
  }

  private let state = Locked(State())

  @usableFromInline
  init() {}

  /// Starts an effect in a task of its own, unless the store has gone.
  ///
  /// - Parameters:
  ///   - scope: The action that it belongs to, if somebody waits for it.
  ///   - effect: What to do.
  @usableFromInline
  func run(
    in scope: EffectScope?,
    _ effect: @escaping @concurrent @Sendable () async -> Void
  ) {
    let id = state.withLock { state -> Int? in
      guard !state.isClosed else { return nil }
      state.lastID += 1
      state.tasks.updateValue(nil, forKey: state.lastID)
      return state.lastID
    }
    guard let id else { return }
    scope?.enter()
    let task = Task.detached(priority: Task.currentPriority) {
      if let scope {
        await WaitScope.local.withValue(scope.flight, operation: effect)
      } else {
        await effect()
      }
      self.end(id)
      scope?.leave()
    }
    let isCancelled = state.withLock { state in
      if state.tasks[id] != nil { state.tasks[id] = task }
      return state.isClosed
    }
    if isCancelled { task.cancel() }
  }

  /// Cancels all effects; later ones are not started.
  func close() {
    let tasks = state.withLock { state in
      state.isClosed = true
      defer { state.tasks = [:] }
      return state.tasks
    }
    for task in tasks.values { task?.cancel() }
  }

  private func end(_ id: Int) {
    let task = state.withLock { $0.tasks.removeValue(forKey: id) }
    withExtendedLifetime(task) {}
  }
}
