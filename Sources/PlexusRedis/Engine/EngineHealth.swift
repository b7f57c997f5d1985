/// The state of the connection of a ``RedisEngine``.
public enum EngineHealth: Hashable, Sendable {
  /// The first connection is being established.
  case connecting
  /// The server answers.
  case connected
  /// The server cannot be reached, for a reason: each process fetches by itself, and stores nothing.
  case isolated(reason: String)
  /// The engine was closed.
  case closed
}
