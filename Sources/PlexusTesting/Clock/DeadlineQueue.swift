internal import PlexusSupport

/// What is due at some instant, soonest first and, at the same instant, in order of arrival.
///
/// A binary heap of deadlines beside a table of payloads. What is removed by its id leaves its
/// deadline behind in the heap until that comes to the top, or until half of the heap is of that kind.
/// Inserting and removing the first take logarithmic time, removing by id constant time on average.
struct DeadlineQueue<Payload: Sendable>: Sendable {
  private struct Node: Comparable, Sendable {
    let deadline: ManualClock.Instant
    let id: Int

    static func < (one: Node, other: Node) -> Bool {
      one.deadline == other.deadline ? one.id < other.id : one.deadline < other.deadline
    }
  }

  /// The first of them always has a payload.
  private var nodes = Heap<Node>()
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
    nodes.insert(Node(deadline: deadline, id: id))
  }

  /// Removes and returns the payload with the given id, if it is still there.
  mutating func remove(id: Int) -> Payload? {
    guard let payload = payloads.removeValue(forKey: id) else { return nil }
    if nodes.count > 2 * payloads.count + 16 {
      nodes.removeAll { payloads[$0.id] == nil }
    }
    dropDeserted()
    return payload
  }

  /// Removes and returns everything that is due at the given instant or before.
  mutating func removeAll(dueAt instant: ManualClock.Instant) -> [Payload] {
    var due: [Payload] = []
    while let first = nodes.first, first.deadline <= instant {
      if let payload = payloads.removeValue(forKey: first.id) { due.append(payload) }
      _ = nodes.popFirst()
    }
    dropDeserted()
    return due
  }

  /// Drops what is at the top and has no payload any more.
  private mutating func dropDeserted() {
    while let first = nodes.first, payloads[first.id] == nil { _ = nodes.popFirst() }
  }
}
