/// A snapshot of the connections of a ``RedisEngine``.
///
/// ## Topics
///
/// ### Connections
/// - ``caches``
/// - ``events``
/// - ``Connection``
///
/// ### Events
/// - ``unconfirmedEvents``
/// - ``unacknowledgedEvents``
/// - ``unannouncedEvents``
public struct EngineStatus: Hashable, Sendable {
  /// The state and the load of a connection.
  public struct Connection: Hashable, Sendable {
    /// The state of the connection; `nil` before its first use.
    public let health: EngineHealth?
    /// The number of bytes that wait to be sent: ``RedisOptions/outboxBytes`` is the limit.
    public let outboxBytes: Int
    /// The number of commands that the server has not answered.
    public let unansweredCommands: Int
  }

  /// The connection of the caches.
  public let caches: Connection
  /// The connection of the events.
  public let events: Connection
  /// The number of events that this process publishes, and that the server has not confirmed.
  public let unconfirmedEvents: Int
  /// The number of events of groups that this process has received, and that are not handled or not acknowledged.
  ///
  /// Other processes of the group get them if this one dies.
  public let unacknowledgedEvents: Int
  /// The number of events of this process that the server has stored, and that ephemeral connections did not receive.
  ///
  /// The user of the engine has no permission for the channel of their topic. All other connections receive them.
  public let unannouncedEvents: Int
}

extension EngineStatus.Connection {
  init(_ connection: RedisConnection?, _ health: EngineHealth?) {
    let load = connection?.load ?? (commands: 0, bytes: 0)
    self.init(health: health, outboxBytes: load.bytes, unansweredCommands: load.commands)
  }
}
