internal import PlexusSupport

/// A queue of payloads ordered by deadline, then by order of arrival.
///
/// A binary heap of deadlines beside a table of payloads. A payload removed by id leaves its deadline in the
/// heap until that reaches the top, or until about half of the heap consists of such deadlines. Inserting
/// and removing the first take logarithmic time; removing by id takes amortized constant time.
struct DeadlineQueue<Payload: Sendable>: Sendable {
  private struct Node: Comparable, Sendable {
    let deadline: ManualClock.Instant
    let id: Int

    static func < (one: Node, other: Node) -> Bool {
      one.deadline == other.deadline ? one.id < other.id : one.deadline < other.deadline
    }
  }

  /// The deadlines; the first one always has a payload.
  private var nodes = Heap<Node>()
  private var payloads: [Int: Payload] = [:]

  var count: Int { payloads.count }

  /// The number of deadlines in the heap, including those of removed payloads.
  var storedCount: Int { nodes.count }

  var earliestDeadline: ManualClock.Instant? { nodes.first?.deadline }

  /// Adds a payload.
  ///
  /// - Parameters:
  ///   - payload: The payload.
  ///   - deadline: Its deadline.
  ///   - id: A number that has not been used before; it orders equal deadlines.
  mutating func insert(_ payload: Payload, deadline: ManualClock.Instant, id: Int) {
    payloads[id] = payload
    nodes.insert(Node(deadline: deadline, id: id))
  }

  /// Removes and returns the payload with the given id, if present.
  mutating func remove(id: Int) -> Payload? {
    guard let payload = payloads.removeValue(forKey: id) else { return nil }
    if nodes.count > 2 * payloads.count + 16 {
      nodes.removeAll { payloads[$0.id] == nil }
    }
    dropDeserted()
    return payload
  }

  /// Removes and returns the payloads that are due at or before an instant, in order.
  mutating func removeAll(dueAt instant: ManualClock.Instant) -> [Payload] {
    var due: [Payload] = []
    while let first = nodes.first, first.deadline <= instant {
      if let payload = payloads.removeValue(forKey: first.id) { due.append(payload) }
      _ = nodes.popFirst()
    }
    dropDeserted()
    return due
  }

  /// Removes deadlines without a payload from the top of the heap.
  private mutating func dropDeserted() {
    while let first = nodes.first, payloads[first.id] == nil { _ = nodes.popFirst() }
  }
}
