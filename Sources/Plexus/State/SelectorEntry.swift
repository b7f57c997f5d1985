// @unchecked Sendable because every field belongs to the thread that drains the queue of the store or
// consumer that the selector is part of. That needs no run-time check for exclusive access either. The casts restore the
// type of hubs that were inserted as hubs of that type.

/// A selector of a store or of a consumer: the value for the newest state, and the subscribers to its changes.
@usableFromInline
@safe
final class SelectorEntry<Value: Sendable>: SelectorEntryBase, @unchecked Sendable {
  /// The value for the newest state.
  @exclusivity(unchecked) @safe
  @usableFromInline var value: Value

  @inlinable
  init(_ value: Value, path: AnyKeyPath? = nil) {
    self.value = value
    super.init(path: path)
  }

  /// Adds a subscriber, which is sent changes from now on.
  ///
  /// - Parameters:
  ///   - hub: The hub of the subscriber.
  ///   - sendsValue: Whether it is sent the present value first.
  /// - Returns: The number with which the subscriber leaves.
  @inlinable
  func insert(_ hub: BroadcastHub<Change<Value>>, sendingValue sendsValue: Bool = true) -> Int {
    if sendsValue { hub.send(Change(old: nil, new: value)) }
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
