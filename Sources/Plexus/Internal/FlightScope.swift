/// What a fetch is known by to the other fetches that it may come to wait for.
@usableFromInline
protocol FlightNode: AnyObject, Sendable {
  /// The name of what is fetched, for people.
  var label: String { get }
  /// The flight that has to end before this one begins.
  var predecessor: (any FlightNode)? { get }
  /// Whether nobody waits for it any more, and nobody will.
  var isSettled: Bool { get }
}

/// For which flight a task works.
@usableFromInline
enum FlightScope: Sendable {
  /// The flight whose fetch the current task belongs to.
  @TaskLocal static var current: (any FlightNode)?

  /// Whether the current task works for no flight.
  @usableFromInline static var isEmpty: Bool { current == nil }
}
