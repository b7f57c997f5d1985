/// The rule that determines when a retained event is discarded.
///
/// With every rule, an event that no subscriber has handled successfully is retained and replayed to each later
/// subscriber, within the limits of its ``EventPersistence``.
public enum PersistenceRule: Sendable, Hashable {
  /// The first success discards the event; later subscribers do not receive it.
  case clearImmediately
  /// All current subscribers receive the event; it is then discarded if at least one succeeded.
  case clearAfterAllCurrentSubscribersNotified
  /// The event is retained regardless of successes and replayed to every later subscriber.
  ///
  /// Without a limit in ``EventPersistence``, the number of retained events grows with every post.
  case neverClear
}
