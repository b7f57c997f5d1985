/// A scope that separates events of the same types.
///
/// For example, two windows of a program can post and observe the same event types in separate scopes. A
/// subscriber with a scope receives only the events posted in that scope; a subscriber without a scope
/// receives only events posted without one.
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
/// Scopes are not registered, and use no memory once they have no subscribers and no retained events. Two
/// scopes are equal if they were created from equal values of the same type.
public struct EventScope: Hashable, Sendable, ExpressibleByStringLiteral {
  private let id: AnyID

  /// Creates a scope that is identified by a value.
  ///
  /// - Parameter id: The value, such as a name, a number or an enum case.
  public init(_ id: some Hashable & Sendable) {
    self.id = AnyID(id)
  }

  /// Creates a scope that is identified by a name.
  ///
  /// - Parameter value: The name; the result equals `EventScope(value)`.
  public init(stringLiteral value: String) {
    self.init(value)
  }
}

extension EventScope: CustomStringConvertible {
  /// The description of the value that identifies the scope.
  public var description: String { id.description }
}
