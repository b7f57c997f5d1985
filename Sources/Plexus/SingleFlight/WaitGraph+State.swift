extension WaitGraph {
  /// A directed graph of waits, which detects cycles.
  ///
  /// A node can wait for several others at the same time, and several times for the same one.
  struct State<Node: Hashable & Sendable>: Sendable {
    private var edges: [Node: [Node: Int]] = [:]
    /// The nodes that wait for a node, kept from the first search for them on.
    private var waiters: [Node: Set<Node>]?

    /// Whether no wait is recorded.
    var isEmpty: Bool { edges.isEmpty }

    /// Records that a node waits for another one, unless the wait closes a cycle.
    ///
    /// - Parameters:
    ///   - node: The waiting node.
    ///   - target: The node to wait for.
    ///   - isSettled: Whether the outcome of a node is known, so that it no longer blocks, even if its waiters
    ///     have not been resumed yet.
    ///   - predecessor: The node that must end before the given one can begin, if any.
    ///   - others: The nodes that the given one waits for without a record.
    /// - Returns: If the wait closes a cycle, the path from the target to the node, including both. Nodes that
    ///   only wait for their predecessor are left out.
    mutating func wait(
      _ node: Node,
      for target: Node,
      isSettled: (Node) -> Bool = { _ in false },
      predecessor: (Node) -> Node?,
      others: (Node) -> [Node] = { _ in [] }
    ) -> [Node]? {
      if let way = way(from: target, to: node, isSettled, predecessor, others) { return way }
      edges[node, default: [:]][target, default: 0] += 1
      waiters?[target, default: []].insert(node)
      return nil
    }

    /// Removes a wait that one call of ``wait(_:for:isSettled:predecessor:others:)`` has recorded.
    mutating func stopWaiting(_ node: Node, for target: Node) {
      guard let count = edges[node]?[target] else { return }
      // Modified in place: a node can wait for very many others.
      edges[node]?[target] = count > 1 ? count - 1 : nil
      if edges[node]?.isEmpty == true { edges[node] = nil }
      guard count == 1, waiters != nil else { return }
      waiters?[target]?.remove(node)
      if waiters?[target]?.isEmpty == true { waiters?[target] = nil }
    }

    /// Returns a node that waits for another one, directly or through others.
    ///
    /// Only nodes that lead there are visited: for a node that no other one waits for, none.
    ///
    /// - Parameters:
    ///   - target: The other node.
    ///   - isSettled: Whether a node no longer waits, even if its waits are still recorded.
    ///   - others: Returns the nodes that wait for the given one without a record, among the nodes that have recorded
    ///     waiters.
    ///   - isWanted: Whether the search ends with a node.
    /// - Returns: The node.
    mutating func waiter(
      for target: Node,
      isSettled: (Node) -> Bool = { _ in false },
      others: (Node, Dictionary<Node, Set<Node>>.Keys) -> [Node] = { _, _ in [] },
      where isWanted: (Node) -> Bool
    ) -> Node? {
      let waiters = indexed()
      var visited: Set<Node> = [target]
      var open = [target]
      while let node = open.popLast() {
        for next in Array(waiters[node] ?? []) + others(node, waiters.keys)
        where !isSettled(next) && visited.insert(next).inserted {
          if isWanted(next) { return next }
          open.append(next)
        }
      }
      return nil
    }

    private mutating func indexed() -> [Node: Set<Node>] {
      if let waiters { return waiters }
      var all: [Node: Set<Node>] = [:]
      for (node, targets) in edges {
        for target in targets.keys { all[target, default: []].insert(node) }
      }
      waiters = all
      return all
    }

    /// Returns the nodes that a node waits for, directly or through others, and the node itself.
    func nodes(
      reachableFrom node: Node,
      isSettled: (Node) -> Bool = { _ in false },
      others: (Node) -> [Node] = { _ in [] }
    ) -> [Node] {
      var visited: Set<Node> = []
      visit(node, &visited, isSettled, others)
      return Array(visited)
    }

    private func visit(
      _ start: Node,
      _ visited: inout Set<Node>,
      _ isSettled: (Node) -> Bool,
      _ others: (Node) -> [Node]
    ) {
      var open = visited.insert(start).inserted ? [start] : []
      while let node = open.popLast() {
        if isSettled(node) { continue }
        for next in Array((edges[node] ?? [:]).keys) + others(node)
        where visited.insert(next).inserted {
          open.append(next)
        }
      }
    }

    private func way(
      from start: Node,
      to goal: Node,
      _ isSettled: (Node) -> Bool,
      _ predecessor: (Node) -> Node?,
      _ others: (Node) -> [Node]
    ) -> [Node]? {
      /// The node from which a node was reached, and whether it was reached as a predecessor.
      var origins: [Node: (from: Node, asPredecessor: Bool)] = [:]
      var visited: Set<Node> = [start]
      var open = [start]
      while let node = open.popLast() {
        // A settled node does not block, not even the goal, which may have ended in the meantime.
        if isSettled(node) { continue }
        if node == goal {
          var way = [goal]
          var current = goal
          while let origin = origins[current] {
            if !origin.asPredecessor { way.append(origin.from) }
            current = origin.from
          }
          return way.reversed()
        }
        if let previous = predecessor(node), visited.insert(previous).inserted {
          origins[previous] = (node, true)
          open.append(previous)
        }
        for next in (edges[node] ?? [:]).keys where visited.insert(next).inserted {
          origins[next] = (node, false)
          open.append(next)
        }
        for next in others(node) where visited.insert(next).inserted {
          origins[next] = (node, false)
          open.append(next)
        }
      }
      return nil
    }
  }
}
