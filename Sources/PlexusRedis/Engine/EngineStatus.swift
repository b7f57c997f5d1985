/// A snapshot of the connections of a ``RedisEngine``, for metrics.
///
/// Numbers count from the start of the engine, over all of its connections.
///
/// ## Topics
///
/// ### Connections
/// - ``caches``
/// - ``events``
/// - ``Connection``
/// - ``reconnections``
///
/// ### Caches
/// - ``lastAnsweredBeat``
/// - ``trustAge``
/// - ``registeredNodes``
/// - ``owedRemovals``
/// - ``timedOutLooks``
/// - ``timedOutFills``
///
/// ### Events
/// - ``unconfirmedEvents``
/// - ``unacknowledgedEvents``
/// - ``unannouncedEvents``
///
/// ### Traffic
/// - ``bytesIn``
/// - ``bytesOut``
/// - ``roundTrips``
/// - ``RoundTrips``
/// - ``errors``
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

  /// The times from commands to their replies.
  public struct RoundTrips: Hashable, Sendable {
    /// The number of replies.
    public let count: Int
    /// The sum of all times.
    public let total: Duration
    /// The longest time.
    public let longest: Duration
  }

  /// The connection of the caches.
  public let caches: Connection
  /// The connection of the events.
  public let events: Connection
  /// The number of connections that were replaced.
  public let reconnections: Int
  /// The time at which the last heartbeat was sent that a master has answered; `nil` before the first one.
  public let lastAnsweredBeat: ContinuousClock.Instant?
  /// The time since the heartbeat by which the copies of the cache that was confirmed longest ago are trusted.
  ///
  /// It is `nil` without caches, or before the first answer. Copies are used up to nine tenths of
  /// ``RedisOptions/nearLease``.
  public let trustAge: Duration?
  /// The number of processes that were registered for the caches at the last count, every three to four minutes; `nil`
  /// before it.
  public let registeredNodes: Int?
  /// The number of removals that have failed, and that are repeated.
  public let owedRemovals: Int
  /// The number of looks that the server did not answer in time.
  public let timedOutLooks: Int
  /// The number of values that the server did not confirm in time.
  public let timedOutFills: Int
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
  /// The number of bytes that were received.
  public let bytesIn: Int
  /// The number of bytes that were sent.
  public let bytesOut: Int
  /// The times from commands to their replies.
  public let roundTrips: RoundTrips
  /// The number of errors of commands and connections by their kind.
  public let errors: [RedisEngineError.Kind: Int]
}

extension EngineStatus.Connection {
  init(_ load: (commands: Int, bytes: Int), _ health: EngineHealth?) {
    self.init(health: health, outboxBytes: load.bytes, unansweredCommands: load.commands)
  }
}

extension EngineStatus.RoundTrips {
  init(_ traffic: TrafficState) {
    self.init(
      count: traffic.roundTrips,
      total: .nanoseconds(traffic.totalTime),
      longest: .nanoseconds(traffic.longestTime)
    )
  }
}
