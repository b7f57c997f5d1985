internal import Plexus
internal import PlexusSupport

/// The announcements that a node has received.
final class Announcements: Sendable {
  private struct State: Sendable {
    var keys: Set<String> = []
    var isComplete = false
    var waiting: [(key: String?, continuation: CheckedContinuation<Void, Never>)] = []

    mutating func takeSatisfied() -> [CheckedContinuation<Void, Never>] {
      var satisfied: [CheckedContinuation<Void, Never>] = []
      waiting.removeAll { waiter in
        let isSatisfied = waiter.key.map { keys.remove($0) != nil } ?? isComplete
        if isSatisfied { satisfied.append(waiter.continuation) }
        return isSatisfied
      }
      return satisfied
    }
  }

  private let state = Locked(State())

  init(of node: any SharedCacher<String>) {
    node.observeChanges { [weak self] change in self?.hear(change) }
  }

  private func hear(_ change: SharedChange) {
    let satisfied = state.withLock { state in
      switch change {
      case .changed(let keys): state.keys.formUnion(keys)
      case .everything: state.isComplete = true
      }
      return state.takeSatisfied()
    }
    for continuation in satisfied { continuation.resume() }
  }

  func contains(_ key: String) -> Bool {
    state.withLock { $0.keys.contains(key) }
  }

  /// Waits for a change of a key, which counts once.
  func wait(for key: String) async {
    await wait(key)
  }

  func waitForEverything() async {
    await wait(nil)
  }

  private func wait(_ key: String?) async {
    await withCheckedContinuation { continuation in
      let satisfied = state.withLock { state in
        state.waiting.append((key, continuation))
        return state.takeSatisfied()
      }
      for continuation in satisfied { continuation.resume() }
    }
  }
}
