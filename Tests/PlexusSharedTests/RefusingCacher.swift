import Plexus
import PlexusSharedTesting
import TestSupport

/// A cacher whose engine refuses the removals of keys, and the store of one key, as long as the test asks for it.
///
/// It can also lose the replies to the stores of that key.
final class RefusingCacher: ForwardingCacher {
  let node: SharedMemoryNode<String>
  private let key: String
  private let refusing = Guarded(false)
  private let losing = Guarded(false)

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

  var losesReplies: Bool {
    get { losing.withLock { $0 } }
    set { losing.withLock { $0 = newValue } }
  }

  func remove(_ what: SharedCache.Removal, reach: ClearReach) async throws {
    if case .keys = what, isRefusing { throw Broken() }
    try await node.remove(what, reach: reach)
  }

  func store(_ entries: [String: CacheEntry<String>]) async throws {
    guard isRefusing || losesReplies, entries[key] != nil else {
      return try await node.store(entries)
    }
    try await node.store(entries.filter { $0.key != key })
    // The reply can be that the value is not stored.
    if !isRefusing { try? await node.store(entries.filter { $0.key == key }) }
    throw CacherError(failures: [key: Broken()])
  }
}
