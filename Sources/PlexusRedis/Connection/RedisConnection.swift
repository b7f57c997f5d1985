internal import PlexusSupport

/// A pipelined connection to a server, which reconnects whenever it breaks.
///
/// Commands of all tasks share it: they are sent in the order of the calls, and none waits for the reply of another
/// one. While the first connection is being made, or a broken one is replaced, commands wait for at most the command
/// timeout; once an attempt to connect has failed, they fail at once until the server is back. They also fail at once as
/// long as a command was not answered in time.
///
/// Only a master is used, unless another server is expected. A server that is demoted, or that serves no keys for another
/// reason, says so in a reply to any command: the connection ends, and the address is resolved again.
///
/// A thread of its own reads replies and pushes. Callers write to the socket themselves where they can. When the
/// connection is released, its thread ends and unanswered commands fail.
final class RedisConnection: Sendable {
  /// A source of credentials.
  typealias Credentials = @concurrent @Sendable () async throws -> RedisCredentials

  /// The settings of a connection.
  struct Settings: Sendable {
    var address: RedisAddress
    /// The sentinels that have the address of the master, if the address is one of sentinels.
    var sentinels: Sentinels?
    /// The cluster, if the address is one of a cluster.
    var cluster: Cluster?
    /// Returns the servers that are tried in turn, for a connection to any server of a cluster.
    var candidates: (@Sendable () -> [RedisAddress])?
    /// The server that is expected at the address.
    var peer = IntroductionState.Peer.master
    /// The source of the credentials, which is called for each connection.
    var credentials: Credentials?
    var sentinelCredentials: Credentials?
    var database = 0
    /// The name of the client in the server's lists.
    var name = "plexus"
    /// Commands to be sent on each new connection before any other.
    var setup: [RedisCommand] = []
    /// Returns the checks that follow on each new connection, once it is made; `nil` for a connection without any.
    var checks: (@Sendable () -> [RestartCheckState])?
    /// The time that a command waits for its reply.
    var commandTimeout: Duration = .milliseconds(250)
    /// The time limit of an attempt to connect, which includes the lookup of a name.
    var connectTimeout: Duration = .seconds(2)
    /// Finds the addresses of a host that is a name.
    var resolve: NameLookup.Resolve = { RedisSocket.systemLookup($0, $1) }
    /// The lookups of all connections with copies of these settings.
    let lookups = NameLookup.Count()
    /// The largest number of bytes that wait to be sent.
    var outboxBytes = 16 << 20
    /// The largest memory for one reply, in bytes.
    var maximumReplyBytes = 512 << 20

    init(_ address: RedisAddress) {
      self.address = address
    }

    /// The source of the credentials of the server that is expected.
    var peerCredentials: Credentials? { peer == .sentinel ? sentinelCredentials : credentials }
  }

  /// A change of the connection, or a message of the server.
  enum Event: Sendable {
    case connected
    case disconnected(RedisConnectionError)
    case push([RESPValue])
    /// The kind of command that the connected server refuses; `nil` if it refuses none any longer.
    case refusal(RedisEngineError?)
  }

  private let loop: ConnectionLoop

  /// Creates a connection and begins to connect.
  ///
  /// - Parameters:
  ///   - settings: The settings.
  ///   - onEvent: Called on the connection's thread, in the order in which the server has sent replies and
  ///     messages: a reply that came before a message has been given to its caller. It must not block.
  /// - Throws: An error if the process has no thread or file descriptor left.
  init(_ settings: Settings, onEvent: @escaping @Sendable (Event) -> Void) throws {
    let loop = try ConnectionLoop(settings, onEvent: onEvent)
    self.loop = loop
    try loop.start()
  }

  deinit {
    loop.stop()
  }

  /// Sends a command and waits for its reply.
  ///
  /// - Throws: The server's error reply; a ``RedisConnectionError``; a `CancellationError` as soon as the calling
  ///   task is cancelled, whether the command was sent or not.
  func send(_ command: RedisCommand) async throws -> RESPValue {
    try await send([command])[0].get()
  }

  /// Sends commands together, before any reply to them, and waits for all replies.
  ///
  /// The command timeout holds for all of them together. One that fails does not keep the others from being answered.
  ///
  /// - Parameters:
  ///   - commands: The commands.
  ///   - deadline: A time at which they end before the command timeout, because they were sent elsewhere before.
  /// - Returns: The reply to each command, in the same order, or what it has failed with as in ``send(_:)``.
  func send(
    _ commands: [RedisCommand],
    until deadline: Nanoseconds? = nil
  ) async -> [Result<RESPValue, any Error>] {
    await loop.send(commands, until: deadline)
  }

  /// Sends a command without waiting for its reply.
  func post(_ command: RedisCommand) -> ConnectionLoop.Posted {
    loop.post(command)
  }

  /// The number of the database.
  var database: Int { loop.settings.database }

  /// The address of the settings.
  var address: RedisAddress { loop.settings.address }

  /// The address of the server that is connected.
  var peer: RedisAddress? { loop.peer }

  /// The spaces that were checked on the connection for a restart of the server.
  var checked: Locked<CheckedSpacesState> { loop.checked }

  /// The commands without a reply, and the bytes that wait to be sent.
  var load: (commands: Int, bytes: Int) { loop.load }

  /// The numbers of the connection.
  var traffic: TrafficState { loop.traffic }

  /// Asks the server for its role, and ends the connection if it is not a master.
  ///
  /// - Parameter confirm: Called if it is one, after the events of all messages that it has sent before its answer. It must
  ///   not block.
  func probe(_ confirm: @escaping @Sendable () -> Void = {}) { loop.probe(confirm) }

  /// Records errors within a reply, after which the connection may have to end.
  func note(_ errors: [RedisError], of purpose: String) { loop.note(errors, of: purpose) }

  /// Records that a cluster does not execute a command at present.
  func note(_ error: RedisError, of command: RedisCommand) { loop.note(error, of: command) }

  /// Forgets the commands before a time that a cluster has not executed.
  func forgetNotes(before time: Nanoseconds) { loop.forgetNotes(before: time) }

  /// Connects to another master at once, unless it is the present one.
  func follow(_ master: RedisAddress) { loop.follow(master) }

  /// Ends the connection: commands that have not been answered fail, as do later ones.
  ///
  /// Returns when the thread has ended.
  func close() async {
    loop.stop()
    await loop.end()
  }
}
