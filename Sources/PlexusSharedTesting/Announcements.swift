internal import Plexus
internal import PlexusSupport

/// The announcements that a node has received.
final class Announcements: Sendable {
  private enum Subject: Sendable {
    case key(String)
    case lease(String)
    /// A change of the key or of its lease.
    case any(String)
    /// The removal by a tag, which an engine can announce by the keys.
    case removal(CacheTag, key: String)
    case everything
  }

  private struct State: Sendable {
    var keys: Set<String> = []
    var leases: Set<String> = []
    var tags: Set<CacheTag> = []
    var isComplete = false
    var waiting: [(subject: Subject, continuation: CheckedContinuation<Void, Never>)] = []

    mutating func takeSatisfied() -> [CheckedContinuation<Void, Never>] {
      var satisfied: [CheckedContinuation<Void, Never>] = []
      waiting.removeAll { waiter in
        let isSatisfied =
          switch waiter.subject {
          case .key(let key): keys.remove(key) != nil
          case .lease(let key): leases.contains(key)
          case .any(let key): leases.remove(key) != nil || keys.remove(key) != nil
          case .removal(let tag, let key): tags.contains(tag) || keys.contains(key)
          case .everything: isComplete
          }
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

  private func hear(_ change: SharedCache.Change) {
    let satisfied = state.withLock { state in
      switch change {
      case .changed(let keys): state.keys.formUnion(keys)
      case .tagged(let tags): state.tags.formUnion(tags)
      case .everything: state.isComplete = true
      case .leased(let keys): state.leases.formUnion(keys)
      case .interrupted: break
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
    await wait(.key(key))
  }

  /// Waits for the change of a key's lease.
  func waitForLease(of key: String) async {
    await wait(.lease(key))
  }

  /// Waits for a change of a key or of its lease, which counts once.
  func waitForAnyChange(of key: String) async {
    await wait(.any(key))
  }

  /// Waits until the removal by a tag is announced.
  func waitForRemoval(of tag: CacheTag, key: String) async {
    await wait(.removal(tag, key: key))
  }

  func waitForEverything() async {
    await wait(.everything)
  }

  private func wait(_ subject: Subject) async {
    await withCheckedContinuation { continuation in
      let satisfied = state.withLock { state in
        state.waiting.append((subject, continuation))
        return state.takeSatisfied()
      }
      for continuation in satisfied { continuation.resume() }
    }
  }
}
