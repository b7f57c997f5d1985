/// When an event that is kept for later subscribers is kept no longer.
///
/// Whatever the rule, an event that no subscriber has handled successfully stays, and is replayed to
/// each later subscriber.
public enum PersistenceRule: Sendable, Hashable {
  /// The first success ends it: the subscribers after that one do not get the event.
  case clearImmediately
  /// All subscribers of the moment get the event; one success among them is enough to end it.
  case clearAfterAllCurrentSubscribersNotified
  /// The event stays, whoever has handled it, and is replayed to every later subscriber.
  ///
  /// Without a limit in ``EventPersistence`` the kept events grow with every post.
  case neverClear
}
