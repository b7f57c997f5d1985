internal import PlexusSupport

/// The prefetching that goes on for a loader.
final class PrefetchTasks: Sendable {
  private struct State: Sendable {
    var tasks: [Int: Task<Void, Never>] = [:]
    var next = 0
  }

  private let state = Locked(State())

  /// Does something for each element, at low priority and four at a time.
  func start<Element: Sendable>(
    _ elements: [Element],
    _ fetch: @escaping @concurrent @Sendable (Element) async -> Void
  ) {
    guard !elements.isEmpty else { return }
    state.withLock { state in
      state.next += 1
      let id = state.next
      // It takes itself out: it has to be in first.
      state.tasks[id] = Task.detached(priority: .utility) { [weak self] in
        await withTaskGroup(of: Void.self) { group in
          for (index, element) in elements.enumerated() {
            if index >= 4 { await group.next() }
            group.addTask { await fetch(element) }
          }
        }
        let ended = self?.state.withLock { $0.tasks.removeValue(forKey: id) }
        withExtendedLifetime(ended) {}
      }
    }
  }

  /// Ends all that goes on now.
  func cancel() {
    for task in state.withLock({ $0.tasks }).values { task.cancel() }
  }
}
