import Testing

/// A state under test, together with the belief of an observer who sees only its effects.
protocol ModelWorld {
  associatedtype Event

  /// The events so far.
  var history: [Event] { get }
  /// The first promise that was broken, if any.
  var brokenPromise: String? { get }

  /// Performs an event.
  ///
  /// - Returns: Whether it is possible now.
  mutating func apply(_ event: Event) -> Bool
}

/// Performs every sequence of events up to a length, each of which has to keep every promise.
func walk<World: ModelWorld>(_ world: World, events: [World.Event], depth: Int) throws {
  guard depth > 0 else { return }
  for event in events {
    var next = world
    guard next.apply(event) else { continue }
    try #require(next.brokenPromise == nil, "after \(next.history)")
    try walk(next, events: events, depth: depth - 1)
  }
}
