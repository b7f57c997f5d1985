import Plexus
import PlexusSharedTesting
import TestSupport

/// A cacher whose replies to looks arrive after something else has happened.
final class LateReplyCacher: ForwardingCacher {
  let node: SharedMemoryNode<String>
  private let events = Guarded<[@Sendable () async throws -> Void]>([])

  init(_ node: SharedMemoryNode<String>) {
    self.node = node
  }

  /// Lets something happen between the answer of the engine to the next look and its arrival, or to the one after it.
  func beforeNextReply(_ event: @escaping @Sendable () async throws -> Void) {
    events.withLock { $0.append(event) }
  }

  func look(
    for wishes: [String: SharedCache.Wish]
  ) async throws -> [String: SharedCache.Finding<String>] {
    let findings = try await node.look(for: wishes)
    try await events.withLock { $0.isEmpty ? nil : $0.removeFirst() }?()
    return findings
  }
}
