// @unchecked Sendable because every field belongs to the thread that drains the queue of the store or
// consumer that the selector is part of. That needs no run-time check for exclusive access either.

/// A selector of a store or of a consumer, as far as it does not depend on the types of state and value.
@usableFromInline
class SelectorEntryBase: @unchecked Sendable {
  /// The number with which it is removed from the table of selectors.
  @exclusivity(unchecked) @safe
  @usableFromInline final var number = 0
  /// The key path that is selected, if its subscribers share the selector.
  final let path: AnyKeyPath?
  /// The hubs of the subscribers, in subscription order.
  @exclusivity(unchecked) @safe
  @usableFromInline final var hubs = StableList<HubBase>()

  @usableFromInline
  init(path: AnyKeyPath?) {
    self.path = path
  }

  /// Removes a subscriber.
  ///
  /// - Parameter place: The number that it got when it was inserted.
  /// - Returns: Whether there is none left.
  final func remove(at place: Int) -> Bool {
    _ = hubs.remove(place)
    return hubs.isEmpty
  }
}
