/// The graph of waits between fetches, loads, actions, posts and handlers in the process.
///
/// Only waits inside a fetch, a load, an action of a debouncer or throttler, an effect of a dispatch that is waited for, or
/// an asynchronous event handler are recorded.
enum WaitGraph: Sendable {
  private static let state = Locked(State<WaitNode>())

  /// Records that a node waits for another one, unless the wait closes a cycle.
  ///
  /// The caller must keep both alive until it calls ``stopWaiting(_:for:)``.
  ///
  /// - Parameters:
  ///   - node: The waiting node.
  ///   - target: The node to wait for.
  /// - Returns: If the wait closes a cycle, the names of its members, with the first one repeated at the end and
  ///   without unnamed members; otherwise `nil`.
  static func wait(_ node: WaitNode, for target: WaitNode) -> [String]? {
    // A loaded reference can be the last one to its node, which is then released outside the lock.
    var loaded: [WaitNode] = []
    let circle = state.withLock { state in
      state.wait(
        node,
        for: target,
        isSettled: \.isSettled,
        predecessor: { node in
          guard let predecessor = node.predecessor else { return nil }
          loaded.append(predecessor)
          return predecessor
        },
        others: { node in
          let others = node.others
          loaded += others
          return others
        }
      )
    }
    withExtendedLifetime(loaded) {}
    guard let circle else {
      FetchLimit.resolve(afterWaitFor: target)
      return nil
    }
    let names = circle.compactMap(\.label)
    return Array(names.suffix(1)) + names
  }

  /// Whether no wait is recorded.
  static var isEmpty: Bool { state.withLock { $0.isEmpty } }

  /// Returns the index of the first of some nodes that waits for another one: directly, through others, or for a place that
  /// another one has.
  static func first(of nodes: [WaitNode], waitingFor target: WaitNode) -> Int? {
    var loaded: [WaitNode] = []
    let index = state.withLock { state in
      state.first(of: nodes, waitingFor: target, isSettled: \.isSettled) { node in
        let next = blockers(of: node)
        loaded += next
        return next
      }
    }
    withExtendedLifetime(loaded) {}
    return index
  }

  /// Returns the nodes that a node waits for, in the same ways, and the node itself.
  static func nodes(reachableFrom node: WaitNode) -> [WaitNode] {
    var loaded: [WaitNode] = []
    let nodes = state.withLock { state in
      state.nodes(reachableFrom: node, isSettled: \.isSettled) { node in
        let next = blockers(of: node)
        loaded += next
        return next
      }
    }
    withExtendedLifetime(loaded) {}
    return nodes
  }

  private static func blockers(of node: WaitNode) -> [WaitNode] {
    var blockers = node.others
    if let predecessor = node.predecessor { blockers.append(predecessor) }
    if let flight = node as? Flight, let limit = flight.limit {
      blockers += limit.holders(blocking: flight).map(\.whole)
    }
    return blockers
  }

  /// Removes a wait that ``wait(_:for:)`` has recorded.
  static func stopWaiting(_ node: WaitNode, for target: WaitNode) {
    state.withLock { $0.stopWaiting(node, for: target) }
  }
}
