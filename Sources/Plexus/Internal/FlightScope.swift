/// What a fetch, or the load of a publisher, is known by to others that it may come to wait for.
@usableFromInline
protocol FlightNode: AnyObject, Sendable {
  /// The name of what is fetched, for people; `nil` for a load, which has none.
  var label: String? { get }
  /// The flight that has to end before this one begins.
  var predecessor: (any FlightNode)? { get }
  /// Whether nobody waits for it any more, and nobody will.
  var isSettled: Bool { get }
}

/// For which flight a task works.
@usableFromInline
enum FlightScope: Sendable {
  /// The flight whose fetch, or the load whose operation, the current task belongs to.
  @TaskLocal static var current: (any FlightNode)?

  /// Whether the current task works for no flight.
  @usableFromInline static var isEmpty: Bool { current == nil }

  /// The same flight, unless nobody waits for it any more: what waits for its own sake is nobody's affair.
  static var awaited: (any FlightNode)? {
    current.flatMap { $0.isSettled ? nil : $0 }
  }
}
