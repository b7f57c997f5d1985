internal import Synchronization

/// What the tasks of a load carry with them, so that it is found out if the load would wait for itself.
final class LoadMark: FlightNode {
  private let hasSettled = Atomic<Bool>(false)

  var label: String? { nil }

  var predecessor: (any FlightNode)? { nil }

  var isSettled: Bool { hasSettled.load(ordering: .acquiring) }

  /// Nobody waits for the load any more.
  func settle() {
    hasSettled.store(true, ordering: .releasing)
  }
}
