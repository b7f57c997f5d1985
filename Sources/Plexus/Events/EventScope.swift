/// A part of the program that has its events for itself.
///
/// Two windows of one program, say, post and observe the same types of events in a scope each. Who
/// subscribes in a scope gets the events that are posted in that scope, and no others; who subscribes
/// without one gets those that are posted without one.
///
/// ```swift
/// struct Scrolled: Event {
///   let position: Int
/// }
///
/// let bus = EventBus()
/// let positions = bus.subscribe(to: Scrolled.self, scope: "left")
/// bus.post(Scrolled(position: 7), scope: "left")
/// bus.post(Scrolled(position: 9), scope: EventScope(2))
/// ```
///
/// Scopes need not be registered, and cost nothing once nobody is subscribed and nothing is kept in
/// them. Two scopes are equal if they were made from equal values of one type.
public struct EventScope: Hashable, Sendable, ExpressibleByStringLiteral {
  private let id: AnyID

  /// Creates the scope that is known by a value.
  ///
  /// - Parameter id: The value: a name, a number, an enum or whatever else tells scopes apart.
  public init(_ id: some Hashable & Sendable) {
    self.id = AnyID(id)
  }

  /// Creates the scope with a name.
  ///
  /// - Parameter value: The name; the scope equals `EventScope(value)`.
  public init(stringLiteral value: String) {
    self.init(value)
  }
}
