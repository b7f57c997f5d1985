// @unchecked Sendable because every field belongs to whoever has the turn of the store that the box is
// part of. That needs no run-time check for exclusive access either.

/// The value of a selector, as far as it does not depend on its type.
@usableFromInline
class ChangeBoxBase: @unchecked Sendable {
  /// The index in the table of selectors.
  @exclusivity(unchecked) @safe
  @usableFromInline final var slot = 0
  /// The key path that is selected, if those who select it share the box.
  @exclusivity(unchecked) @safe
  @usableFromInline final var path: AnyKeyPath?

  @inlinable
  init() {}

  /// Lets a subscriber go.
  ///
  /// - Parameter place: What it got when it was inserted.
  /// - Returns: Whether there is none left.
  func remove(at place: Int) -> Bool { true }
}

/// The value of a selector and those who are told of its changes.
@usableFromInline
@safe
final class ChangeBox<Value: Sendable>: ChangeBoxBase, @unchecked Sendable {
  /// The value for the newest state.
  @exclusivity(unchecked) @safe
  @usableFromInline var value: Value
  /// In subscription order.
  @exclusivity(unchecked) @safe
  @usableFromInline var hubs = Roster<BroadcastHub<Change<Value>>>()

  @inlinable
  init(_ value: Value) {
    self.value = value
  }

  /// Tells a new subscriber the present value, and changes from now on.
  ///
  /// - Returns: The place of the subscriber.
  @usableFromInline
  func insert(_ hub: BroadcastHub<Change<Value>>) -> Int {
    hub.send(Change(old: nil, new: value))
    return hubs.append(hub)
  }

  /// Tells everybody that the value has changed.
  ///
  /// - Parameter new: What it has become.
  @inlinable
  func change(to new: Value) {
    let change = Change(old: value, new: new)
    value = new
    for place in hubs.places { place.member?.send(change) }
  }

  override func remove(at place: Int) -> Bool {
    _ = hubs.remove(place)
    return hubs.isEmpty
  }
}
