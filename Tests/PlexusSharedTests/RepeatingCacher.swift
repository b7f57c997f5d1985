import Plexus
import PlexusSharedTesting
import TestSupport

/// A cacher that breaks its contract: it can repeat its first entry.
final class RepeatingCacher: SharedCacher {
  private struct State {
    var isRepeating = false
    var repeatCount = 0
  }

  private let node: SharedMemoryNode<String>
  private let state = Guarded(State())

  init(_ node: SharedMemoryNode<String>) {
    self.node = node
  }

  /// Repeats the entry that the engine has now.
  func repeats() {
    state.withLock { $0.isRepeating = true }
  }

  /// The number of looks that were answered by the repetition.
  var repeatCount: Int { state.withLock { $0.repeatCount } }

  var trust: NearTrust { node.trust }

  func look(
    for wishes: [String: SharedCache.Wish]
  ) async throws -> [String: SharedCache.Finding<String>] {
    let isRepeating = state.withLock { state in
      if state.isRepeating { state.repeatCount += 1 }
      return state.isRepeating
    }
    let wishes = isRepeating ? wishes.mapValues { _ in SharedCache.Wish() } : wishes
    return try await node.look(for: wishes)
  }

  func fill(
    _ entry: CacheEntry<String>,
    under lease: SharedCache.Lease
  ) async throws -> SharedCache.Fill {
    try await node.fill(entry, under: lease)
  }

  func release(_ leases: [SharedCache.Lease], because failure: SharedCache.Failure?) async {
    await node.release(leases, because: failure)
  }

  func outdate(_ keys: Set<String>) async throws {}

  func remove(_ what: SharedCache.Removal, reach: ClearReach) async throws {
    try await node.remove(what, reach: reach)
  }

  var generation: CacheGeneration? { node.generation }

  func store(_ entries: [String: CacheEntry<String>]) async throws {
    try await node.store(entries)
  }

  func observeChanges(_ handler: @escaping @Sendable (SharedCache.Change) -> Void) {
    node.observeChanges(handler)
  }
}
