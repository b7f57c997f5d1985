/// The state of a connection of a ``RedisEngine``.
public enum EngineHealth: Hashable, Sendable {
  /// The first connection is being established.
  case connecting
  /// The server answers.
  case connected
  /// The server cannot be reached, for a reason.
  ///
  /// Each process fetches by itself, and stores nothing. Publishing an event fails, and events of other processes follow
  /// after the reconnection.
  case isolated(reason: String)
  /// The engine was closed.
  case closed
}
