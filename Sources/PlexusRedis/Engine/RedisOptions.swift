/// The settings of a ``RedisEngine``.
///
/// ## Topics
///
/// ### Creating options
/// - ``init(credentials:sentinelCredentials:database:commandTimeout:nearLease:whileIsolated:fetchLease:retention:clearReplicas:eventTimeout:eventLimit:whenGroupIsBehind:outboxBytes:clientName:)``
///
/// ### Signing in
/// - ``credentials``
/// - ``sentinelCredentials``
/// - ``database``
/// - ``clientName``
///
/// ### Times
/// - ``commandTimeout``
/// - ``nearLease``
/// - ``fetchLease``
/// - ``retention``
///
/// ### Outages
/// - ``whileIsolated-swift.property``
/// - ``WhileIsolated-swift.enum``
///
/// ### Durability
/// - ``clearReplicas``
///
/// ### Events
/// - ``eventTimeout``
/// - ``eventLimit``
/// - ``whenGroupIsBehind-swift.property``
///
/// ### Memory
/// - ``outboxBytes``
public struct RedisOptions: Sendable {
  /// The use of copies while the server cannot be reached.
  public enum WhileIsolated: Hashable, Sendable {
    /// No copy is used, not even as a fallback: each process fetches for its current callers.
    ///
    /// Requests of a key that arrive during its fetch share it. All others fetch: an outage of the server multiplies the
    /// queries of the origin.
    case fetch
    /// Copies are used, and are fallbacks, for some time.
    ///
    /// The time counts from the last heartbeat that the server has answered. For a value that is fetched meanwhile, it
    /// counts from the start of its fetch: the origin has at most one query for each key and time.
    ///
    /// A clear with the reach `.everywhere` waits this long for a process that does not react. A process that was
    /// disconnected before can still answer with values that it has fetched by itself, at most this time before.
    /// After a reconnection, no copy is used without a look.
    case keep(Duration)
  }

  /// The behavior of a topic with ``RedisOptions/eventLimit`` whose groups are behind.
  public enum WhenGroupIsBehind: Hashable, Sendable {
    /// Publishing fails at twice the limit, with an error that names the group. No event is lost.
    case refuse
    /// At twice the limit, the oldest events are removed, and publishing continues.
    ///
    /// A group that has not handled them reports the gap when it reads again.
    case trim
  }

  /// Returns the user and the password; `nil` if the server requires none.
  ///
  /// It is called for each connection, within the time for connecting, and again before the credentials expire. A call for
  /// a connection that takes longer than 30 seconds is cancelled, and another one begins.
  ///
  /// ```swift
  /// import PlexusRedis
  ///
  /// func makeEngine(token: @escaping @Sendable () async throws -> String) throws -> RedisEngine {
  ///   var options = RedisOptions()
  ///   options.credentials = {
  ///     RedisCredentials(user: "cache", password: try await token(), expires: .now + .seconds(900))
  ///   }
  ///   return try RedisEngine(.tls(host: "redis.example", port: 6380, ca: nil), options: options)
  /// }
  /// ```
  public var credentials: (@concurrent @Sendable () async throws -> RedisCredentials)?
  /// Returns the user and the password of the sentinels; `nil` if they require none.
  public var sentinelCredentials: (@concurrent @Sendable () async throws -> RedisCredentials)?
  /// The number of the database.
  public var database: Int
  /// The time that a command waits for its reply.
  ///
  /// If the server takes longer, the request continues without it.
  public var commandTimeout: Duration
  /// The longest time for which copies in memory are used without an answer from the server; at least 200 milliseconds.
  ///
  /// It is counted from the last heartbeat that was answered, of which there are four in this time: usually, two thirds to
  /// nine tenths of it are left when a connection breaks.
  ///
  /// A clear with the reach `.everywhere` waits this long for a node that does not react.
  public var nearLease: Duration
  /// The use of copies while the server cannot be reached, after ``nearLease``.
  public var whileIsolated: WhileIsolated
  /// The time after which the fetch of a node that has died is taken over by another one; at least 200 milliseconds.
  public var fetchLease: Duration
  /// The longest time after which the server removes an entry that was not replaced.
  ///
  /// An entry is removed earlier if its cache cannot use it as long: after its time to live and the policy's
  /// `staleTimeToLive`, if there is one.
  public var retention: Duration
  /// The number of replicas that have to acknowledge a clear before it returns.
  ///
  /// If fewer replicas acknowledge the clear within ``commandTimeout``, it throws, although the server has executed it, and
  /// stays owed until they have: ``EngineStatus/owedRemovals``. It removes nothing again. A clear that returns is lost only
  /// together with the server and all of these replicas. With a number above zero, an engine has another connection, on which
  /// clears wait for the replicas, and its user needs the permission for `WAIT`. No command waits for a clear that waits, and
  /// clears at the same time wait together.
  ///
  /// The number applies to every clear that reaches other processes: of keys, of tags and of everything. A refresh does not
  /// wait.
  public var clearReplicas: Int
  /// The time for which publishing an event is attempted, also over another connection.
  ///
  /// The connection of the events is tested as often, and replaced if the server does not answer for twice this time.
  public var eventTimeout: Duration
  /// The number of messages that a topic keeps for disconnected nodes; at least 1,000.
  ///
  /// Messages that a group has not handled are kept beyond this number. At twice the number, ``whenGroupIsBehind-swift.property``
  /// decides.
  public var eventLimit: Int
  /// The behavior of a topic that has twice as many messages as ``eventLimit``, because a group is behind or absent.
  public var whenGroupIsBehind: WhenGroupIsBehind
  /// The number of bytes that can wait to be sent; further commands fail immediately.
  ///
  /// The limit applies separately to the connection of the caches and to that of the events, for which events that wait
  /// for a batch are counted as well.
  public var outboxBytes: Int
  /// The name of the connections in the server's list of clients, without spaces.
  ///
  /// The connections of events, clears and large values add `-events`, `-clears` and `-values`, the one to a sentinel
  /// `-sentinel`, and the one to any server of a cluster `-cluster`.
  public var clientName: String

  /// Creates settings.
  ///
  /// - Parameters:
  ///   - credentials: Returns the user and the password; `nil` if the server requires none.
  ///   - sentinelCredentials: Returns the user and the password of the sentinels; `nil` if they require none.
  ///   - database: The number of the database.
  ///   - commandTimeout: The time that a command waits for its reply.
  ///   - nearLease: The longest time for which copies in memory are used without an answer from the server.
  ///   - whileIsolated: The use of copies while the server cannot be reached.
  ///   - fetchLease: The time after which the fetch of a node that has died is taken over.
  ///   - retention: The time after which the server removes an entry that was not replaced.
  ///   - clearReplicas: The number of replicas that have to acknowledge a clear.
  ///   - eventTimeout: The time for which publishing an event is attempted.
  ///   - eventLimit: The number of messages that a topic keeps.
  ///   - whenGroupIsBehind: The behavior of a topic that has twice as many messages.
  ///   - outboxBytes: The number of bytes that can wait to be sent.
  ///   - clientName: The name of the connections in the server's list of clients.
  public init(
    credentials: (@concurrent @Sendable () async throws -> RedisCredentials)? = nil,
    sentinelCredentials: (@concurrent @Sendable () async throws -> RedisCredentials)? = nil,
    database: Int = 0,
    commandTimeout: Duration = .milliseconds(250),
    nearLease: Duration = .seconds(2),
    whileIsolated: WhileIsolated = .fetch,
    fetchLease: Duration = .seconds(3),
    retention: Duration = .seconds(7 * 86_400),
    clearReplicas: Int = 0,
    eventTimeout: Duration = .seconds(5),
    eventLimit: Int = 100_000,
    whenGroupIsBehind: WhenGroupIsBehind = .refuse,
    outboxBytes: Int = 16 << 20,
    clientName: String = "plexus"
  ) {
    self.credentials = credentials
    self.sentinelCredentials = sentinelCredentials
    self.database = database
    self.commandTimeout = commandTimeout
    self.nearLease = nearLease
    self.whileIsolated = whileIsolated
    self.fetchLease = fetchLease
    self.retention = retention
    self.clearReplicas = clearReplicas
    self.eventTimeout = eventTimeout
    self.eventLimit = eventLimit
    self.whenGroupIsBehind = whenGroupIsBehind
    self.outboxBytes = outboxBytes
    self.clientName = clientName
  }

  /// The time for which copies are used while the server cannot be reached; zero for none.
  var timeToKeep: Duration {
    switch whileIsolated {
    case .fetch: .zero
    case .keep(let time): max(time, .zero)
    }
  }
}
