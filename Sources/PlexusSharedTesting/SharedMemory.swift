internal import Plexus
internal import PlexusSupport

/// An engine in memory that several nodes of one process share, for tests of caches with a `SharedCacher`.
///
/// Each node stands for a process: give the cacher of each node to one cache.
///
/// ```swift
/// import Plexus
/// import PlexusSharedTesting
///
/// let engine = SharedMemory<String>()
/// let first = MultiplexerMap<Int, String>(cacher: engine.node()) { id in "user \(id)" }
/// let second = MultiplexerMap<Int, String>(cacher: engine.node()) { id in "user \(id)" }
///
/// _ = try await first.request(7)
/// // Taken from the engine: the fetch of the second map does not run.
/// print(try await second.request(7))
/// ```
///
/// With a manual clock everything is deterministic: announcements arrive before the operation that causes them
/// returns, leases and trust end by the clock, and a slow node sleeps on it.
///
/// ## Topics
///
/// ### Creating an engine
/// - ``init(_:clock:fetchLease:nearLease:keeping:)``
/// - ``node()``
///
/// ### Restoring an earlier content
/// - ``snapshot``
/// - ``Snapshot``
/// - ``restore(_:)``
public final class SharedMemory<Value: Sendable>: Sendable {
  /// The content of an engine at some time.
  public struct Snapshot: Sendable {
    fileprivate let state: SharedMemoryState<Value>
  }

  private struct State: Sendable {
    var content: SharedMemoryState<Value>
    var nodes: [SharedMemoryNode<Value>] = []
  }

  let clock: any Clock<Duration>
  /// The time for which a node that is cut off trusts its copies.
  let nearLease: Duration
  /// The time for which a node that is cut off uses copies.
  let timeToKeep: Duration
  private let time: ElapsedTime
  private let state: Locked<State>

  /// Creates an empty engine.
  ///
  /// - Parameters:
  ///   - type: The type of the values.
  ///   - clock: The clock of the engine.
  ///   - fetchLease: The time for which the leases of a node that is cut off last.
  ///   - nearLease: The time for which a node that is cut off trusts its copies.
  ///   - timeToKeep: The time for which a node that is cut off uses copies, and values that it fetches meanwhile.
  public init(
    _ type: Value.Type = Value.self,
    clock: any Clock<Duration> = ContinuousClock(),
    fetchLease: Duration = .seconds(3),
    nearLease: Duration = .seconds(2),
    keeping timeToKeep: Duration = .zero
  ) {
    self.clock = clock
    self.timeToKeep = timeToKeep
    self.nearLease = nearLease
    time = ElapsedTime(clock)
    state = Locked(State(content: SharedMemoryState(leaseTime: fetchLease)))
  }

  /// Returns the cacher of another node, which is connected.
  public func node() -> SharedMemoryNode<Value> {
    state.withLock { state in
      let node = SharedMemoryNode(
        self,
        number: state.nodes.count,
        knowledge: state.content.knowledge
      )
      state.nodes.append(node)
      return node
    }
  }

  /// The content at present, to be restored by ``restore(_:)``.
  public var snapshot: Snapshot { Snapshot(state: state.withLock { $0.content }) }

  /// Replaces the content by an earlier one, as an engine does that restarts from a snapshot.
  ///
  /// The connections of all nodes break and are made again.
  ///
  /// - Parameter snapshot: The content; `nil` for none.
  public func restore(_ snapshot: Snapshot? = nil) {
    let now = time.now
    let (old, nodes) = state.withLock { state in
      let old = state.content
      state.content = snapshot?.state ?? SharedMemoryState(leaseTime: old.leaseTime)
      state.content.succeed(old, isEmpty: snapshot == nil)
      // Nodes renew only the leases that they still hold.
      for node in state.nodes.indices { state.content.disconnect(node, at: now) }
      return (old, state.nodes)
    }
    withExtendedLifetime(old) {}
    for node in nodes where node.isConnected { node.reconnect() }
  }

  // MARK: - For nodes

  /// Performs an operation of a node.
  func perform<Result: Sendable>(
    _ body: (inout SharedMemoryState<Value>, Duration, Set<Int>) -> (
      Result, [SharedMemoryState<Value>.Announcement]
    )
  ) -> Result {
    let now = time.now
    let (result, announcements, nodes) = state.withLock { state in
      let (result, announcements) = body(&state.content, now, Set(state.nodes.indices))
      for announcement in announcements {
        for number in announcement.nodes { state.nodes[number].expectAnnouncement() }
      }
      return (result, announcements, state.nodes)
    }
    for announcement in announcements {
      for number in announcement.nodes { nodes[number].hear(announcement.change) }
    }
    return result
  }

  /// Waits until no other node trusts copies that it has made before.
  func waitForTrust(except number: Int) async throws {
    let nodes = state.withLock { $0.nodes }
    let now = time.now
    let ends = nodes.compactMap { $0.number == number ? nil : $0.trustEnd }
    guard let end = ends.max(), end > now else { return }
    try await time.sleep(until: end)
  }

  /// The present time.
  var now: Duration { time.now }
}
