internal import Synchronization

/// The work that several flights share: one fetch for the keys of all of them.
///
/// It is cancelled when nobody waits for any of them any more, and has the highest priority of all.
final class FlightBatch: Sendable {
  let work = FlightWork()
  private let remaining: Atomic<Int>

  init(count: Int) {
    remaining = Atomic(count)
  }

  /// A flight is cancelled, or has ended.
  func leave() {
    if remaining.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { work.cancel() }
  }
}

/// What the tasks of a fetch for several keys carry with them.
///
/// Each flight waits for whatever the batch waits for: a fetch that asks for one of its own keys is
/// found out like any other circle.
final class BatchMark<Key: Hashable & Sendable>: FlightNode {
  private let marks: [FlightMark<Key>]

  init(_ marks: [FlightMark<Key>]) {
    self.marks = marks
  }

  var label: String? {
    let labels = marks.prefix(3).compactMap(\.label).joined(separator: ", ")
    return marks.count > 3 ? "\(labels) and \(marks.count - 3) more" : labels
  }

  var predecessor: (any FlightNode)? { nil }

  var isSettled: Bool { marks.allSatisfy(\.isSettled) }
}
