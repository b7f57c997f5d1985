/// Whether, how long and up to which number events are kept for those who subscribe later.
///
/// ```swift
/// struct Position: Event {
///   let latitude, longitude: Double
///   var persistence: EventPersistence { .persistent(.neverClear, limit: 1, timeToLive: .seconds(60)) }
/// }
/// ```
///
/// Events are kept for each type and scope apart.
public struct EventPersistence: Sendable, Hashable {
  /// When the event is kept no longer; `nil` if it is not kept at all.
  public let rule: PersistenceRule?
  /// The most events of this type and scope that are kept; the oldest give way.
  public let limit: Int?
  /// How long the event is kept, from the moment when it is posted.
  public let timeToLive: Duration?

  private init(rule: PersistenceRule?, limit: Int?, timeToLive: Duration?) {
    self.rule = rule
    self.limit = limit
    self.timeToLive = timeToLive
  }

  /// The event is gone when those who are subscribed have had it.
  public static let none = EventPersistence(rule: nil, limit: nil, timeToLive: nil)

  /// The event is kept until its rule, a newer event or time ends that.
  ///
  /// - Parameters:
  ///   - rule: When it is kept no longer.
  ///   - limit: How many events of this type and scope may be kept once this one has been posted, the
  ///     newest ones; 1 keeps the latest only, and with 0 or less nothing is kept. `nil` is no limit.
  ///   - timeToLive: How long the event is kept; from exactly that age on it is not. With zero or less
  ///     it is not kept at all. `nil` is for ever.
  /// - Returns: The persistence.
  public static func persistent(
    _ rule: PersistenceRule,
    limit: Int? = nil,
    timeToLive: Duration? = nil
  ) -> EventPersistence {
    EventPersistence(rule: rule, limit: limit, timeToLive: timeToLive)
  }
}
