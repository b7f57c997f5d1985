// @unchecked Sendable because every field belongs to the thread that drains the queue of the store that the
// selector is part of. That needs no run-time check for exclusive access either. The casts restore the type of
// hubs that were inserted as hubs of that type.

/// A selector of a store, as far as it does not depend on the types of state and value.
@usableFromInline
class SelectorBase: @unchecked Sendable {
  /// The index in the table of selectors.
  @exclusivity(unchecked) @safe
  @usableFromInline final var slot = 0
  /// The key path that is selected, if all who select it share the selector.
  @exclusivity(unchecked) @safe
  @usableFromInline final var path: AnyKeyPath?
  /// The hubs of the subscribers, in subscription order.
  @exclusivity(unchecked) @safe
  @usableFromInline final var hubs = StableList<HubCore>()

  @inlinable
  init() {}

  /// Removes a subscriber.
  ///
  /// - Parameter place: The number that it got when it was inserted.
  /// - Returns: Whether there is none left, and the hub, to be released when the table is in order.
  @usableFromInline
  final func remove(at place: Int) -> (isEmpty: Bool, hub: HubCore?) {
    let hub = hubs.remove(place)
    return (hubs.isEmpty, hub)
  }
}

/// A selector of a store: the value for the newest state, and the subscribers to its changes.
@usableFromInline
@safe
final class Selector<Value: Sendable>: SelectorBase, @unchecked Sendable {
  /// The value for the newest state.
  @exclusivity(unchecked) @safe
  @usableFromInline var value: Value

  @inlinable
  init(_ value: Value) {
    self.value = value
    super.init()
  }

  /// Sends a new subscriber the present value, and changes from now on.
  ///
  /// - Returns: The number with which the subscriber leaves.
  @inlinable
  func insert(_ hub: BroadcastHub<Change<Value>>) -> Int {
    hub.send(Change(old: nil, new: value))
    return hubs.append(hub)
  }

  /// Sends all subscribers that the value has changed.
  ///
  /// - Parameter new: The new value.
  @inlinable
  func change(to new: Value) {
    let change = Change(old: value, new: new)
    value = new
    for place in hubs.places {
      guard let hub = place.member else { continue }
      unsafe unsafeDowncast(hub, to: BroadcastHub<Change<Value>>.self).send(change)
    }
  }
}
