/// The settings of a ``RedisEngine``.
///
/// ## Topics
///
/// ### Creating options
/// - ``init()``
///
/// ### Signing in
/// - ``user``
/// - ``password``
/// - ``database``
///
/// ### Times
/// - ``commandTimeout``
/// - ``nearLease``
/// - ``fetchLease``
/// - ``retention``
///
/// ### Durability
/// - ``clearReplicas``
///
/// ### Memory
/// - ``outboxBytes``
public struct RedisOptions: Sendable {
  /// The name of the user; `nil` for the default user.
  public var user: String?
  /// The password, if the server requires one.
  public var password: String?
  /// The number of the database.
  public var database = 0
  /// The time that a command waits for its reply.
  ///
  /// If the server takes longer, the request continues without it.
  public var commandTimeout: Duration = .milliseconds(250)
  /// The longest time for which copies in memory are used without an answer from the server; at least 200 milliseconds.
  ///
  /// It is counted from the last heartbeat that was answered, of which there are four in this time: usually, two thirds to
  /// nine tenths of it are left when a connection breaks.
  ///
  /// A clear with the reach `.everywhere` waits this long for a node that does not react.
  public var nearLease: Duration = .seconds(2)
  /// The time after which the fetch of a node that has died is taken over by another one; at least 200 milliseconds.
  public var fetchLease: Duration = .seconds(3)
  /// The longest time after which the server removes an entry that was not replaced.
  ///
  /// An entry is removed earlier if its cache cannot use it as long: after its time to live and the policy's
  /// `staleTimeToLive`, if there is one.
  public var retention: Duration = .seconds(7 * 86_400)
  /// The number of replicas that have to acknowledge a clear before it returns.
  ///
  /// If fewer replicas acknowledge the clear within ``commandTimeout``, it throws, and is repeated before the key is used
  /// again, although the server has executed it. A clear that returns is lost only together with the server and all of
  /// these replicas. With a number above zero, an engine has another connection, on which clears wait for the replicas and
  /// delay no other command, and its user needs the permission for `WAIT`.
  ///
  /// The number applies to every clear that reaches other processes: of keys, of tags and of everything. A refresh does not
  /// wait.
  public var clearReplicas: Int = 0
  /// The time for which publishing an event is attempted, also over another connection.
  ///
  /// The connection of the events is tested as often, and replaced if the server does not answer for twice this time.
  public var eventTimeout: Duration = .seconds(5)
  /// The number of messages that a topic keeps for disconnected nodes; at least 1,000.
  ///
  /// Messages that a group has not handled are kept beyond this number. At twice the number, publishing fails.
  public var eventLimit = 100_000
  /// The number of bytes that can wait to be sent; further commands fail immediately.
  ///
  /// The limit applies separately to the connection of the caches and to that of the events, for which events that wait
  /// for a batch are counted as well.
  public var outboxBytes = 16 << 20

  /// Creates the default settings.
  public init() {}
}
