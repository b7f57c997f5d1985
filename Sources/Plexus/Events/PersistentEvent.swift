/// An event that is retained according to a rule, for example until a handler succeeds.
///
/// ```swift
/// struct PaymentFailed: PersistentEvent {
///   let order: Int
///   var persistenceRule: PersistenceRule { .clearImmediately }
/// }
/// ```
///
/// Handlers can return a ``HandlerResult`` to report whether they handled the event.
/// <doc:events> describes the effects of each rule.
public protocol PersistentEvent: Event {
  /// The rule that ends the retention of an event.
  var persistenceRule: PersistenceRule { get }
}

extension PersistentEvent {
  /// The default persistence: the rule of the event, without a limit of number or time.
  public var persistence: EventPersistence { .persistent(persistenceRule) }
}
