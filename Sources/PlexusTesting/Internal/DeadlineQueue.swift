/// What is due at some instant, soonest first and, at the same instant, in order of arrival.
///
/// A binary heap of deadlines beside a table of payloads. What is removed by its id leaves its
/// deadline behind in the heap until that comes to the top, or until half of the heap is of that kind.
/// Inserting and removing the first take logarithmic time, removing by id constant time on average.
struct DeadlineQueue<Payload: Sendable>: Sendable {
  private struct Node: Sendable {
    let deadline: ManualClock.Instant
    let id: Int

    func isBefore(_ other: Node) -> Bool {
      deadline == other.deadline ? id < other.id : deadline < other.deadline
    }
  }

  /// The first of them always has a payload.
  private var nodes: [Node] = []
  private var payloads: [Int: Payload] = [:]

  var count: Int { payloads.count }

  /// The number of deadlines, those of payloads that have been removed by their id included.
  var storedCount: Int { nodes.count }

  var earliestDeadline: ManualClock.Instant? { nodes.first?.deadline }

  /// Adds a payload.
  ///
  /// - Parameters:
  ///   - payload: What is due.
  ///   - deadline: When it is due.
  ///   - id: A number that no other payload has or has had; it decides between equal deadlines.
  mutating func insert(_ payload: Payload, deadline: ManualClock.Instant, id: Int) {
    payloads[id] = payload
    nodes.append(Node(deadline: deadline, id: id))
    moveUp(from: nodes.count - 1)
  }

  /// Removes and returns the payload with the given id, if it is still there.
  mutating func remove(id: Int) -> Payload? {
    guard let payload = payloads.removeValue(forKey: id) else { return nil }
    if nodes.count > 2 * payloads.count + 16 {
      nodes.removeAll { payloads[$0.id] == nil }
      // Sorted, they are a heap.
      nodes.sort { $0.isBefore($1) }
    }
    dropDeserted()
    return payload
  }

  /// Removes and returns everything that is due at the given instant or before.
  mutating func removeAll(dueAt instant: ManualClock.Instant) -> [Payload] {
    var due: [Payload] = []
    while let first = nodes.first, first.deadline <= instant {
      if let payload = payloads.removeValue(forKey: first.id) { due.append(payload) }
      dropFirst()
    }
    dropDeserted()
    return due
  }

  /// Drops what is at the top and has no payload any more.
  private mutating func dropDeserted() {
    while let first = nodes.first, payloads[first.id] == nil { dropFirst() }
  }

  private mutating func dropFirst() {
    let last = nodes.removeLast()
    guard !nodes.isEmpty else { return }
    nodes[0] = last
    moveDown(from: 0)
  }

  private mutating func moveUp(from start: Int) {
    var position = start
    let node = nodes[position]
    while position > 0, node.isBefore(nodes[(position - 1) / 2]) {
      nodes[position] = nodes[(position - 1) / 2]
      position = (position - 1) / 2
    }
    nodes[position] = node
  }

  private mutating func moveDown(from start: Int) {
    var position = start
    let node = nodes[position]
    while let child = firstChild(of: position), nodes[child].isBefore(node) {
      nodes[position] = nodes[child]
      position = child
    }
    nodes[position] = node
  }

  /// The child that comes before its sibling.
  private func firstChild(of position: Int) -> Int? {
    let left = 2 * position + 1
    guard left < nodes.count else { return nil }
    let right = left + 1
    return right < nodes.count && nodes[right].isBefore(nodes[left]) ? right : left
  }
}
