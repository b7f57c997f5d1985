import Plexus
import PlexusSharedTesting
import TestSupport

/// A cacher that breaks its contract: each look finds a newer entry, which is older than any value may be.
final class RisingCacher: SharedCacher {
  private let node: SharedMemoryNode<String>
  private let token = Guarded<UInt64>(0)

  init(_ node: SharedMemoryNode<String>) {
    self.node = node
  }

  /// The number of looks for a key.
  var lookCount: Int { Int(token.withLock { $0 }) }

  var trust: NearTrust { node.trust }

  func look(
    for wishes: [String: SharedCache.Wish]
  ) async throws -> [String: SharedCache.Finding<String>] {
    wishes.mapValues { _ in
      let token = token.withLock { token in
        token += 1
        return token
      }
      let entry = CacheEntry(value: "old", storedAt: .zero)
      return .entry(
        entry,
        age: .seconds(1_000),
        SharedCache.Version(epoch: 1, nonce: 1, token: token)
      )
    }
  }

  func fill(
    _ entry: CacheEntry<String>,
    under lease: SharedCache.Lease
  ) async throws -> SharedCache.Fill {
    .superseded
  }

  func release(_ leases: [SharedCache.Lease], because failure: SharedCache.Failure?) async {}

  func outdate(_ keys: Set<String>) async throws {}

  func remove(_ what: SharedCache.Removal, reach: ClearReach) async throws {}

  var generation: CacheGeneration? { node.generation }

  func store(_ entries: [String: CacheEntry<String>]) async throws {}

  func observeChanges(_ handler: @escaping @Sendable (SharedCache.Change) -> Void) {
    node.observeChanges(handler)
  }
}
