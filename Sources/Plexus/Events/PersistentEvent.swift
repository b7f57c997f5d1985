/// An event that is kept, if need be, until somebody has handled it.
///
/// ```swift
/// struct PaymentFailed: PersistentEvent {
///   let order: Int
///   var persistenceRule: PersistenceRule { .clearImmediately }
/// }
/// ```
///
/// Its handlers may return a ``HandlerResult`` to tell whether they could do anything with it.
/// <doc:persistent-events> tells what happens under which rule.
public protocol PersistentEvent: Event {
  /// When an event is kept no longer.
  var persistenceRule: PersistenceRule { get }
}

extension PersistentEvent {
  /// The event is kept as its rule says, without a limit of number or time.
  public var persistence: EventPersistence { .persistent(persistenceRule) }
}
