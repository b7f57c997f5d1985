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
  /// - Parameter feed: The subscriber.
  /// - Returns: Whether there is none left.
  func remove(_ feed: FeedID) -> Bool { true }
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
  @usableFromInline var feeds: ContiguousArray<(id: FeedID, hub: BroadcastHub<Change<Value>>)> = []

  @inlinable
  init(_ value: Value) {
    self.value = value
  }

  /// Tells a new subscriber the present value, and changes from now on.
  @usableFromInline
  func insert(_ hub: BroadcastHub<Change<Value>>, id: FeedID) {
    feeds.append((id, hub))
    hub.send(Change(old: nil, new: value))
  }

  /// Tells everybody that the value has changed.
  ///
  /// - Parameter new: What it has become.
  @inlinable
  func change(to new: Value) {
    let change = Change(old: value, new: new)
    value = new
    for feed in feeds { feed.hub.send(change) }
  }

  override func remove(_ feed: FeedID) -> Bool {
    feeds.removeAll { $0.id == feed }
    return feeds.isEmpty
  }
}
