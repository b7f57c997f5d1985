internal import Plexus

/// The state of a connection of a ``RedisEngine``.
public enum EngineHealth: Hashable, Sendable {
  /// The first connection is being established.
  case connecting
  /// The server answers.
  case connected
  /// The server answers, but refuses a kind of command, for a reason.
  ///
  /// The reason names the command, and the right that is missing. If heartbeats are refused, nothing is shared: each process
  /// fetches for its current callers. The state ends when a command of the kind succeeds.
  case degraded(reason: String)
  /// The server cannot be reached or is not a master, for a reason.
  ///
  /// Copies in memory are used for at most ``RedisOptions/nearLease``. Then each process fetches for its current callers;
  /// ``RedisOptions/whileIsolated-swift.property`` determines whether it keeps the values. Publishing an event fails unless
  /// a connection is restored within ``RedisOptions/eventTimeout``, and events of other processes follow after the
  /// reconnection.
  case isolated(reason: String)
  /// The engine was closed.
  case closed
}

extension CurrentValue where Element: Equatable {
  /// Publishes the value that a state has now.
  ///
  /// Threads can publish in another order than they have changed the state, so that the state is read again.
  ///
  /// - Parameter current: Returns the value of the state.
  nonisolated func follow(_ current: () -> Element) {
    while true {
      let new = current()
      guard value != new else { return }
      value = new
    }
  }
}
