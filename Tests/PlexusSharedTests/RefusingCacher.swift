import Plexus
import PlexusSharedTesting
import TestSupport

/// A cacher whose engine refuses the removals of keys, and the store of one key, as long as the test asks for it.
final class RefusingCacher: SharedCacher {
  struct Refused: Error, Hashable {}

  private let node: SharedMemoryNode<String>
  private let key: String
  private let refusing = Guarded(false)

  /// - Parameters:
  ///   - node: The node.
  ///   - key: The key that is not stored.
  init(_ node: SharedMemoryNode<String>, refusing key: String) {
    self.node = node
    self.key = key
  }

  var isRefusing: Bool {
    get { refusing.withLock { $0 } }
    set { refusing.withLock { $0 = newValue } }
  }

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
    if case .keys = what, isRefusing { throw Refused() }
    try await node.remove(what, reach: reach)
  }

  func store(_ entries: [String: CacheEntry<String>]) async throws {
    guard isRefusing, entries[key] != nil else { return try await node.store(entries) }
    try await node.store(entries.filter { $0.key != key })
    throw CacherError(failures: [key: Refused()])
  }

  func observeChanges(_ handler: @escaping @Sendable (SharedCache.Change) -> Void) {
    node.observeChanges(handler)
  }
}
