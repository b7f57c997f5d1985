/// What is due at some instant, soonest first and, at the same instant, in order of arrival.
///
/// A binary heap that knows where everything is, so that inserting, removing by id and removing
/// the first all take logarithmic time.
struct DeadlineQueue<Payload: Sendable>: Sendable {
  private struct Node: Sendable {
    let deadline: ManualClock.Instant
    let id: Int
    let payload: Payload

    func isBefore(_ other: Node) -> Bool {
      (deadline, id) < (other.deadline, other.id)
    }
  }

  private var nodes: [Node] = []
  private var positions: [Int: Int] = [:]

  var count: Int { nodes.count }

  var earliestDeadline: ManualClock.Instant? { nodes.first?.deadline }

  /// Adds a payload.
  ///
  /// - Parameters:
  ///   - payload: What is due.
  ///   - deadline: When it is due.
  ///   - id: A number that no other payload has; it decides between equal deadlines.
  mutating func insert(_ payload: Payload, deadline: ManualClock.Instant, id: Int) {
    nodes.append(Node(deadline: deadline, id: id, payload: payload))
    positions[id] = nodes.count - 1
    moveUp(from: nodes.count - 1)
  }

  /// Removes and returns the payload with the given id, if it is still there.
  mutating func remove(id: Int) -> Payload? {
    guard let position = positions.removeValue(forKey: id) else { return nil }
    let payload = nodes[position].payload
    let last = nodes.removeLast()
    if position < nodes.count {
      place(last, at: position)
      moveUp(from: position)
      moveDown(from: position)
    }
    return payload
  }

  /// Removes and returns everything that is due at the given instant or before.
  mutating func removeAll(dueAt instant: ManualClock.Instant) -> [Payload] {
    var due: [Payload] = []
    while let first = nodes.first, first.deadline <= instant {
      if let payload = remove(id: first.id) { due.append(payload) }
    }
    return due
  }

  private mutating func place(_ node: Node, at position: Int) {
    nodes[position] = node
    positions[node.id] = position
  }

  private mutating func moveUp(from start: Int) {
    var position = start
    let node = nodes[position]
    while position > 0, node.isBefore(nodes[(position - 1) / 2]) {
      place(nodes[(position - 1) / 2], at: position)
      position = (position - 1) / 2
    }
    place(node, at: position)
  }

  private mutating func moveDown(from start: Int) {
    var position = start
    let node = nodes[position]
    while let child = firstChild(of: position), nodes[child].isBefore(node) {
      place(nodes[child], at: position)
      position = child
    }
    place(node, at: position)
  }

  /// The child that comes before its sibling.
  private func firstChild(of position: Int) -> Int? {
    let left = 2 * position + 1
    guard left < nodes.count else { return nil }
    let right = left + 1
    return right < nodes.count && nodes[right].isBefore(nodes[left]) ? right : left
  }
}
