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
      FetchLimit.noteWait(of: node)
      FetchLimit.resolve(afterWaitOf: node, for: target)
      return nil
    }
    let names = circle.compactMap(\.label)
    return Array(names.suffix(1)) + names
  }

  /// Whether no wait is recorded.
  static var isEmpty: Bool { state.withLock { $0.isEmpty } }

  /// Returns a node that waits for another one: directly, through others, or for a place that another one has.
  ///
  /// - Parameters:
  ///   - target: The other node.
  ///   - limit: The limit for whose places the search is: a fetch that waits for one of them leads to no other ones than
  ///     the fetches that have them.
  ///   - isWanted: Whether the search ends with a node; called under the lock of the graph.
  /// - Returns: The node.
  static func waiter(
    for target: WaitNode,
    in limit: FetchLimit,
    where isWanted: (WaitNode) -> Bool
  ) -> WaitNode? {
    var loaded: [WaitNode] = []
    let waiter = state.withLock { state in
      state.waiter(
        for: target,
        isSettled: \.isOver,
        others: { node, awaited in
          switch node {
          case let batch as BulkFlight
          where !batch.isFollowed && batch.isWithoutPlace(outside: limit):
            batch.parts.filter { awaited.contains($0) && $0.batch === batch }
          case let flight as Flight
          where !flight.isFollowed && flight.isWithoutPlace(outside: limit):
            []
          default: awaited.filter { leads($0, to: node, &loaded) }
          }
        },
        where: isWanted
      )
    }
    withExtendedLifetime(loaded) {}
    return waiter
  }

  /// Returns whether a node waits for another one without a record, directly or through others.
  private static func leads(
    _ start: WaitNode,
    to target: WaitNode,
    _ loaded: inout [WaitNode]
  ) -> Bool {
    var visited: Set<WaitNode> = [start]
    var open = [start]
    while let node = open.popLast() {
      if node.isOver { continue }
      if let flight = node as? Flight, let holder = target as? Flight, let limit = flight.limit,
        limit === holder.limit, limit.waits(flight, forPlaceOf: holder)
      {
        return true
      }
      var next = node.others
      if let predecessor = node.predecessor { next.append(predecessor) }
      loaded += next
      if next.contains(target) { return true }
      for node in next where visited.insert(node).inserted { open.append(node) }
    }
    return false
  }

  /// Returns the nodes that a node waits for, in the same ways, and the node itself.
  static func nodes(reachableFrom node: WaitNode) -> [WaitNode] {
    var loaded: [WaitNode] = []
    var limits: Set<ObjectIdentifier> = []
    let nodes = state.withLock { state in
      state.nodes(reachableFrom: node, isSettled: \.isOver) { node in
        var blockers = node.others
        if let predecessor = node.predecessor { blockers.append(predecessor) }
        // The same ones for each fetch that waits.
        if let flight = node as? Flight, let limit = flight.limit,
          !limits.contains(ObjectIdentifier(limit))
        {
          let holders = limit.holders(blocking: flight)
          if !holders.isEmpty { limits.insert(ObjectIdentifier(limit)) }
          blockers += holders
        }
        loaded += blockers
        return blockers
      }
    }
    withExtendedLifetime(loaded) {}
    return nodes
  }

  /// Removes a wait that ``wait(_:for:)`` has recorded.
  static func stopWaiting(_ node: WaitNode, for target: WaitNode) {
    state.withLock { $0.stopWaiting(node, for: target) }
    FetchLimit.noteEndOfWait(of: node)
  }
}
