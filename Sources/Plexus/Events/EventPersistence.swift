/// Whether an event is retained for later subscribers, for how long, and up to how many.
///
/// ```swift
/// struct Position: Event {
///   let latitude, longitude: Double
///   var persistence: EventPersistence { .persistent(.neverClear, limit: 1, timeToLive: .seconds(60)) }
/// }
/// ```
///
/// Events are retained separately for each type and scope.
///
/// ## Topics
///
/// ### Creating a persistence
/// - ``none``
/// - ``persistent(_:limit:timeToLive:)``
///
/// ### Reading
/// - ``rule``
/// - ``limit``
/// - ``timeToLive``
public struct EventPersistence: Sendable, Hashable {
  /// The rule that ends the retention, or `nil` if the event is not retained.
  public let rule: PersistenceRule?
  /// The maximum number of retained events of this type and scope; the oldest are discarded first.
  public let limit: Int?
  /// The time for which the event is retained after it was posted.
  public let timeToLive: Duration?

  private init(rule: PersistenceRule?, limit: Int?, timeToLive: Duration?) {
    self.rule = rule
    self.limit = limit
    self.timeToLive = timeToLive
  }

  /// The event is discarded once all current subscribers have received it.
  public static let none = EventPersistence(rule: nil, limit: nil, timeToLive: nil)

  /// The event is retained until its rule, a limit or its age ends the retention.
  ///
  /// - Parameters:
  ///   - rule: The rule that ends the retention.
  ///   - limit: The maximum number of events of this type and scope to retain once this one has been
  ///     posted. Zero or less retains none; `nil` means no limit.
  ///   - timeToLive: The age at which the event is no longer retained. Zero or less does not retain it at
  ///     all; `nil` means no limit.
  /// - Returns: The persistence.
  public static func persistent(
    _ rule: PersistenceRule,
    limit: Int? = nil,
    timeToLive: Duration? = nil
  ) -> EventPersistence {
    EventPersistence(rule: rule, limit: limit, timeToLive: timeToLive)
  }
}
