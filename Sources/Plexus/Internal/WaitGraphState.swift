/// Who waits for whom, so that nobody comes to wait for itself.
///
/// A node may wait for several others at once, and several times for the same one.
struct WaitGraphState<Node: Hashable & Sendable>: Sendable {
  private var edges: [Node: [Node: Int]] = [:]

  /// Whether nobody waits for anybody.
  var isEmpty: Bool { edges.isEmpty }

  /// Records that a node waits for another one, unless it would wait for itself then.
  ///
  /// - Parameters:
  ///   - node: The node that wants to wait.
  ///   - target: What it wants to wait for.
  ///   - isSettled: Whether nobody need wait for a node any more, even if some have not noticed yet.
  ///   - predecessor: The node that has to end before the given one can begin, if there is one.
  /// - Returns: If it would wait for itself, the way from the target back to the node, both
  ///   included. A node that merely waits for its predecessor to begin is left out.
  mutating func wait(
    _ node: Node,
    for target: Node,
    isSettled: (Node) -> Bool = { _ in false },
    predecessor: (Node) -> Node?
  ) -> [Node]? {
    if let way = way(from: target, to: node, isSettled, predecessor) { return way }
    edges[node, default: [:]][target, default: 0] += 1
    return nil
  }

  /// Takes back what one call of ``wait(_:for:isSettled:predecessor:)`` has recorded.
  mutating func stopWaiting(_ node: Node, for target: Node) {
    guard let count = edges[node]?[target] else { return }
    // In place: a node may wait for very many others at once.
    edges[node]?[target] = count > 1 ? count - 1 : nil
    if edges[node]?.isEmpty == true { edges[node] = nil }
  }

  private func way(
    from start: Node,
    to goal: Node,
    _ isSettled: (Node) -> Bool,
    _ predecessor: (Node) -> Node?
  ) -> [Node]? {
    /// How a node was reached: from where, and whether as the predecessor.
    var origins: [Node: (from: Node, asPredecessor: Bool)] = [:]
    var visited: Set<Node> = [start]
    var open = [start]
    while let node = open.popLast() {
      if node == goal {
        var way = [goal]
        var current = goal
        while let origin = origins[current] {
          if !origin.asPredecessor { way.append(origin.from) }
          current = origin.from
        }
        return way.reversed()
      }
      if isSettled(node) { continue }
      if let previous = predecessor(node), visited.insert(previous).inserted {
        origins[previous] = (node, true)
        open.append(previous)
      }
      for next in (edges[node] ?? [:]).keys where visited.insert(next).inserted {
        origins[next] = (node, false)
        open.append(next)
      }
    }
    return nil
  }
}
