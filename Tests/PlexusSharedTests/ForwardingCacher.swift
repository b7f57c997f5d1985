import Plexus
import PlexusSharedTesting

/// A cacher over a node, which does what the node does unless it says otherwise.
protocol ForwardingCacher: SharedCacher<String> {
  var node: SharedMemoryNode<String> { get }
}

extension ForwardingCacher {
  var trust: NearTrust { node.trust }

  var generation: CacheGeneration? { node.generation }

  func look(
    for wishes: [String: SharedCache.Wish]
  ) async throws -> [String: SharedCache.Finding<String>] {
    try await node.look(for: wishes)
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

  func outdate(_ keys: Set<String>) async throws { try await node.outdate(keys) }

  func remove(_ what: SharedCache.Removal, reach: ClearReach) async throws {
    try await node.remove(what, reach: reach)
  }

  func store(_ entries: [String: CacheEntry<String>]) async throws { try await node.store(entries) }

  func observeChanges(_ handler: @escaping @Sendable (SharedCache.Change) -> Void) {
    node.observeChanges(handler)
  }
}
