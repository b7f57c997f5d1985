internal import Foundation
internal import Plexus
internal import PlexusSupport

/// The events of an engine, over a connection of its own that begins with the first call.
///
/// The server announces changes of the streams that were read, as it does for caches: a reader looks again, and the
/// stream has the messages in order. An ephemeral reader gets the messages from a channel.
final class RedisEvents: EventLink {
  /// Events as JSON.
  private struct Codec: LinkCodec {
    func encode(_ value: some Encodable) throws -> [UInt8] {
      [UInt8](try RedisCoding.encoder.encode(value))
    }

    func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
      try RedisCoding.decoder.decode(type, from: Data(bytes))
    }
  }

  /// The state and the load of the link.
  struct Status: Sendable {
    let connection: EngineStatus.Connection
    let unconfirmed: Int
    let unacknowledged: Int
    let unannounced: Int
    let traffic: TrafficState?
  }

  /// The longest time between two questions for the role of the server.
  private static let longestPace = Duration.seconds(1)

  let codec: any LinkCodec = Codec()
  /// The name of this process, which no other has.
  let node = String(UInt64.random(in: .min ... .max), radix: 36)
  private let settings: RedisConnection.Settings
  /// The time for which publishing is attempted.
  let timeout: Duration
  /// The number of messages that a topic keeps.
  let limit: Int
  /// Whether a topic removes messages that a group needs rather than to refuse others.
  let trimsWhenBehind: Bool
  /// The messages that are being published.
  let outbox: Locked<EventOutboxState<Publisher>>
  /// The state of the connection; `nil` before its first use.
  let health = CurrentValue<EngineHealth?>(nil)
  /// Held while a connection is made, whose events change the state meanwhile.
  private let making = Locked(())
  let state = Locked(State())

  /// - Parameters:
  ///   - settings: The settings of the engine's connections.
  ///   - options: The options of the engine.
  init(_ settings: RedisConnection.Settings, _ options: RedisOptions) {
    precondition(options.eventLimit >= 1_000, "The event limit must be at least 1,000 messages")
    var settings = settings
    settings.name += "-events"
    settings.commandTimeout = options.eventTimeout
    self.settings = settings
    timeout = options.eventTimeout
    limit = options.eventLimit
    trimsWhenBehind = options.whenGroupIsBehind == .trim
    outbox = Locked(EventOutboxState(limit: settings.outboxBytes))
  }

  deinit {
    state.withLock { $0.heart }?.cancel()
  }

  // MARK: - Connection

  /// The connection, which is begun by the first call.
  ///
  /// - Throws: An error if the link was closed, or the process has no thread or file descriptor left.
  func connection() throws -> RedisConnection {
    let (known, isClosed) = state.withLock { ($0.connection, $0.isClosed) }
    // Readers use it until they have released their messages.
    if let known { return known }
    guard !isClosed else { throw RedisConnectionError.closed }
    // A second connection would end, and its end would count as that of the first one.
    return try making.withLock { _ in
      let (known, isClosed) = state.withLock { ($0.connection, $0.isClosed) }
      if let known { return known }
      guard !isClosed else { throw RedisConnectionError.closed }
      health.value = .connecting
      let new = try RedisConnection(settings) { [weak self] in self?.receive($0) }
      let pace = min(timeout, Self.longestPace)
      let heart = Task.detached { [weak self] in
        while (try? await Task.sleep(for: pace)) != nil {
          guard self?.beat() != nil else { return }
        }
      }
      state.withLock { ($0.connection, $0.heart) = (new, heart) }
      return new
    }
  }

  /// Asks the server for its role, so that a connection that was lost without a notice is replaced, or one to a server that
  /// was demoted.
  ///
  /// A reader sends nothing while it waits for an announcement.
  func beat() {
    guard state.withLock({ $0.isConnected && !$0.bells.isEmpty }) else { return }
    probe()
  }

  /// Asks the server for its role.
  func probe() {
    state.withLock { $0.connection }?.probe()
  }

  /// Connects to another master.
  func follow(_ master: RedisAddress) {
    state.withLock { $0.connection }?.follow(master)
  }

  /// The state and the load of the link.
  var status: Status {
    let (unacknowledged, unannounced, current) = state.withLock { state in
      let held = state.members.values.reduce(state.acknowledgements.count) { $0 + $1.held }
      return (held, state.unannounced, state.connection)
    }
    let (unconfirmed, waiting) = outbox.withLock { ($0.count, $0.bytes) }
    let load = load
    let connection = EngineStatus.Connection(
      health: health.value,
      outboxBytes: load.bytes + waiting,
      unansweredCommands: load.commands
    )
    return Status(
      connection: connection,
      unconfirmed: unconfirmed,
      unacknowledged: unacknowledged,
      unannounced: unannounced,
      traffic: current?.traffic
    )
  }

  /// Records that messages were stored and not announced.
  func noteUnannounced(_ count: Int) {
    state.withLock { $0.unannounced += count }
  }

  /// The commands without a reply, and the bytes that wait to be sent.
  var load: (commands: Int, bytes: Int) {
    state.withLock { $0.connection }?.load ?? (commands: 0, bytes: 0)
  }

  /// The number of connections so far: replies that come before it changes are those of one server.
  var generation: Int { state.withLock { $0.generation } }

  /// Whether the link was closed.
  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Waits until the server answers.
  ///
  /// - Parameter bell: A signal of the reader, which rings at each change of the connection.
  /// - Throws: An error if the link was closed, or the process has no thread or file descriptor left.
  func waitForConnection(_ bell: Bell) async throws {
    _ = try connection()
    while !Task.isCancelled {
      let (isConnected, isClosed) = state.withLock { ($0.isConnected, $0.isClosed) }
      guard !isConnected, !isClosed else { return }
      await bell.wait(atMost: nil)
    }
  }

  func send(_ command: RedisCommand) async throws -> RESPValue {
    try await connection().send(command)
  }

  func send(_ commands: [RedisCommand]) async throws -> [Result<RESPValue, any Error>] {
    try await connection().send(commands)
  }

  func run(
    _ script: RedisScript,
    _ keys: [String],
    _ arguments: [RedisCommand.Argument]
  ) async throws -> RESPValue {
    try await script.run(on: connection(), keys: keys, arguments)
  }

  /// Repeats an operation that the engine carries out once only, until its time is over.
  ///
  /// - Parameters:
  ///   - deadline: The time after which it is not begun again; `nil` for the time limit of the events.
  ///   - operation: The operation.
  /// - Returns: Its result.
  /// - Throws: The error of the last attempt.
  func retrying(
    until deadline: Nanoseconds? = nil,
    _ operation: () async throws -> RESPValue
  ) async throws -> RESPValue {
    let deadline = deadline ?? .now + Nanoseconds(timeout)
    var backoff = Backoff()
    var generator = SystemRandomNumberGenerator()
    while true {
      do {
        return try await operation()
      } catch {
        let pause = backoff.next(using: &generator)
        guard Self.isTemporary(error), .now + pause < deadline else { throw error }
        try await Task.sleep(for: .nanoseconds(pause))
      }
    }
  }

  /// Returns whether an operation can succeed when it is repeated.
  static func isTemporary(_ error: any Error) -> Bool {
    switch error {
    case let error as RedisConnectionError: error.isTemporary
    case let error as RedisError:
      switch error.kind {
      case .notMaster: true
      case .cluster: error.code == "TRYAGAIN"
      default: ["LOADING", "BUSY"].contains(error.code)
      }
    default: false
    }
  }

  /// Releases the messages that readers have, ends their streams, and ends the connection.
  func close() async {
    // A connection that is being made is closed as well.
    let (leaving, bells, heart) = making.withLock { _ in
      state.withLock { state in
        state.isClosed = true
        return (state.members.compactMapValues(\.leave), state.allBells, state.heart)
      }
    }
    heart?.cancel()
    for bell in bells { bell.ring() }
    for (id, leave) in leaving where await !leave() { await release(of: id) }
    for departure in state.withLock({ Array($0.departures.values) }) { await departure.value }
    let connection = state.withLock { $0.connection.take() }
    await connection?.close()
    update { $0.close() }
  }

  // MARK: - Reading

  /// Returns messages of a stream from a position on, the oldest first.
  func range(
    _ stream: String,
    from start: LinkPosition,
    count: Int
  ) async throws -> [MessageFormat.Entry] {
    let reply = try await send(
      RedisCommand(
        "XRANGE",
        [.text(stream), .text("\(start)"), "+", "COUNT", .number(Int64(count))]
      )
    )
    guard let elements = reply.elements else { throw TierError.unexpectedReply }
    return try elements.map { try MessageFormat.Entry.read($0) }
  }

  /// Looks at the end of a stream, and at a message.
  ///
  /// - Parameters:
  ///   - stream: The stream.
  ///   - position: The position of the message; `nil` for the last one.
  /// - Returns: The last position that the stream has had, and the id of the message; no id if it is not there.
  /// - Throws: An error of the connection or of the server.
  func survey(
    _ stream: String,
    at position: LinkPosition?
  ) async throws -> (latest: LinkPosition, id: String?) {
    let argument = position.map { "\($0)" } ?? ""
    let reply = try await run(TopicScripts.survey, [stream], [.text(argument)])
    guard let parts = reply.elements, parts.count == 2, let latest = LinkPosition(parts[0]) else {
      throw TierError.unexpectedReply
    }
    return (latest, Self.id(of: parts[1], at: position ?? latest))
  }

  /// Returns the id of a message.
  ///
  /// - Parameters:
  ///   - header: The fields of the header; a null if there is no message.
  ///   - position: The position of the message.
  /// - Returns: The id, if there is a message.
  static func id(of header: RESPValue, at position: LinkPosition) -> String? {
    MessageFormat.Entry(id: .string(Array("\(position)".utf8)), fields: header)?.message.id
  }

  /// The number of bytes of a message beyond which only its header is read.
  var largestEntry: Int { settings.maximumReplyBytes / 16 * 15 }
}
