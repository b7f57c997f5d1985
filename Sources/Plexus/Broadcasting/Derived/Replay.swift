/// The elements that a new subscriber of a source gets first, as of one moment.
@usableFromInline
struct Replay<Element: Sendable>: Sendable {
  /// The elements, oldest first.
  let elements: [Element]
  /// Calls a closure while nothing newer passes the stages of a view, unless something has.
  ///
  /// The stages send what they have still to deliver with the number that the closure gets. It returns whether it has
  /// done its work, and so does the call. `nil` if the source is no view.
  var join: (@Sendable (_ body: (_ number: UInt64) -> Bool) -> Bool)?

  /// Returns the elements of any source that has a state.
  static func of(_ source: some Broadcaster<Element>) -> Self? {
    if let source = source as? any HubBacked<Element> { return source.currentReplay() }
    guard let source = source as? any StatefulBroadcaster<Element> else { return nil }
    return Self(elements: [source.current])
  }
}
