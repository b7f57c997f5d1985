/// A value that can be posted on an event bus.
///
/// Any `Sendable` type can be an event:
///
/// ```swift
/// struct LoggedIn: Event {
///   let name: String
/// }
///
/// let bus = EventBus()
/// bus.post(LoggedIn(name: "Ada"))
/// ```
///
/// An event reaches the subscribers of exactly its own type. By default, it is discarded once all
/// current subscribers have received it.
public protocol Event: Sendable {
  /// Whether events are retained for later subscribers, how many, and for how long.
  ///
  /// The bus reads this property once for each posted event. The default is ``EventPersistence/none``.
  var persistence: EventPersistence { get }
}

extension Event {
  /// The default persistence, which does not retain the event.
  public var persistence: EventPersistence { .none }
}
