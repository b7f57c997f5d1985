import Plexus
import PlexusSharedTesting
import TestSupport

/// A cacher that breaks its contract: it can repeat its first entry.
final class RepeatingCacher: ForwardingCacher {
  private struct State {
    var isRepeating = false
    var repeatCount = 0
  }

  let node: SharedMemoryNode<String>
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

  func outdate(_ keys: Set<String>) async throws {}
}
