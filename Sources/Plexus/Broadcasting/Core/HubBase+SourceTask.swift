extension HubBase {
  /// A task that forwards the elements of another sequence to a hub.
  @usableFromInline
  struct SourceTask: Sendable {
    /// The task, once it has been created.
    var task: Task<Void, Never>?
  }

  /// Iterates a sequence in a task of its own, which ends with the hub.
  ///
  /// Nothing happens if the hub has finished.
  ///
  /// - Parameters:
  ///   - sequence: The sequence to iterate.
  ///   - receive: A closure that is called for each element and returns whether to continue.
  ///   - fail: A closure that is called with the error if there is one.
  final func feed<Source: AsyncSequence & Sendable>(
    from sequence: Source,
    receive: @escaping @Sendable (Source.Element) -> Bool,
    fail: @escaping @Sendable (any Error) -> Void
  ) {
    let id = UniqueID.next()
    let isOpen = state.withLock { state in
      if !state.isFinished { state.sourceTasks[id] = SourceTask() }
      return !state.isFinished
    }
    guard isOpen else { return }
    let task = Task.detached(priority: Task.currentPriority) { [weak self] in
      do {
        for try await element in sequence {
          guard !Task.isCancelled, receive(element) else { break }
        }
      } catch {
        fail(error)
      }
      self?.state.release { $0.sourceTasks.removeValue(forKey: id) }
    }
    let isOver = state.withLock { state in
      guard state.sourceTasks[id] != nil else { return true }
      state.sourceTasks[id]?.task = task
      return false
    }
    // The iteration has ended already, or the hub has.
    if isOver { task.cancel() }
  }
}
