/// A source of persistent events, whose handlers may return what they could do with an event.
///
/// ``EventBus`` is one. Its handlers that return a ``HandlerResult`` are listed here, those that return
/// nothing are its own members. Swift prefers those where a closure has no result at all, and both are
/// called in the same way:
///
/// ```swift
/// struct PaymentFailed: PersistentEvent {
///   let order: Int
///   var persistenceRule: PersistenceRule { .clearImmediately }
/// }
///
/// let bus = EventBus()
/// bus.observe(id: "log", PaymentFailed.self) { event in
///   print(event.order)
/// }
/// bus.observe(id: "screen", PaymentFailed.self) { event in
///   event.order > 0 ? .handledSuccessfully : .failed
/// }
/// ```
public protocol PersistentEventSource: Sendable {}

extension EventBus: PersistentEventSource {}
