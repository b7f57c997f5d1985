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

  /// The message in progress of a reader of a group.
  struct Hand: Sendable {
    let stream: String
    let group: String
    let position: LinkPosition
    let identity: [UInt8]
    /// Whether it was acknowledged or rejected.
    var isSettled = false
  }

  struct State: Sendable {
    var connection: RedisConnection?
    var isConnected = false
    var isClosed = false
    var lastID: UInt64 = 0
    /// The signals of readers, by the key that they read.
    var bells: [String: [UInt64: Bell]] = [:]
    var channels: [String: [UInt64: ChannelBuffer]] = [:]
    /// The ends of groups' readers when the link is closed.
    var leaving: [UInt64: @Sendable () async -> Bool] = [:]
    /// The calls that close the link, while they wait for a reader that is being released.
    var closing: [UInt64: [CheckedContinuation<Void, Never>]] = [:]
    /// The number of messages that each reader of a group has received and not finished.
    var held: [UInt64: Int] = [:]
    /// The messages in progress, by reader.
    var hands: [UInt64: Hand] = [:]
    /// The calls by which readers give messages back that have failed, by the key that they change.
    var owed: [String: [RedisScript.Call]] = [:]
    /// The number of messages that were stored and not announced.
    var unannounced = 0
    /// The number of connections so far.
    var generation = 0
    var heart: Task<Void, Never>?
    var places = ReaderPlaces()

    var allBells: [Bell] {
      bells.values.flatMap(\.values)
    }
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
  let healthState = Locked(HealthState())
  /// Held while a connection is made.
  private let making = Locked(())
  let state = Locked(State())
  /// The acknowledgements that the engine has not confirmed.
  let acknowledgements = Locked(AcknowledgementState())
  /// The acknowledgements that are waited for, or sent again.
  let acknowledging = Locked<[UInt64: Task<Void, any Error>]>([:])
  /// The calls by which readers that have ended give their messages back.
  let departures = Locked<[UInt64: Task<Void, Never>]>([:])

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
    let (held, unannounced) = state.withLock { ($0.held.values.reduce(0, +), $0.unannounced) }
    let acknowledged = acknowledgements.withLock { $0.count }
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
      unacknowledged: held + acknowledged,
      unannounced: unannounced,
      traffic: state.withLock { $0.connection }?.traffic
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
        return (state.leaving, state.allBells, state.heart)
      }
    }
    heart?.cancel()
    for bell in bells { bell.ring() }
    for (id, leave) in leaving where await !leave() { await release(of: id) }
    for departure in departures.withLock({ Array($0.values) }) { await departure.value }
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

  // MARK: - Readers

  /// Returns the name of a reader of a group, which no other has.
  func consumer(of id: UInt64) -> String { "\(node).\(id)" }

  /// Returns a number that no other reader has.
  func makeReaderID() -> UInt64 {
    state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
  }

  /// Rings a bell when a key changes, and when the connection is lost, made or closed.
  func add(_ bell: Bell, for key: String, _ id: UInt64) {
    state.withLock { $0.bells[key, default: [:]][id] = bell }
  }

  func removeBell(for key: String, _ id: UInt64) {
    let removed = state.withLock { state in
      let removed = state.bells[key]?.removeValue(forKey: id)
      if state.bells[key]?.isEmpty == true { state.bells[key] = nil }
      return removed
    }
    withExtendedLifetime(removed) {}
  }

  /// Records how many messages a reader of a group has received and not finished.
  func note(held count: Int, by id: UInt64) {
    state.withLock { $0.held[id] = count > 0 ? count : nil }
  }

  /// Records the latest message of a reader that ends, for its successor.
  func remember(_ place: Place) {
    let now = Nanoseconds.now
    state.withLock { $0.places.remember(place, at: now) }
  }

  /// Returns the latest message of an earlier reader, as ``ReaderPlaces/recall(_:of:at:)`` does.
  func recall(
    _ reading: Place.Reading,
    of stream: String,
    at position: LinkPosition? = nil
  ) -> Place? {
    state.withLock { $0.places.recall(reading, of: stream, at: position) }
  }

  /// Returns whether the server has lost the latest message of a reader, or given its position again, and the id of the
  /// message at the position.
  func look(at place: Place) async throws -> (isBehind: Bool, id: String?) {
    let (latest, id) = try await survey(place.stream, at: place.position)
    return (place.isLost(latest: latest, id: id), id)
  }

  /// Calls a closure when the link is closed, which returns whether the reader still exists.
  func add(_ leave: @escaping @Sendable () async -> Bool, _ id: UInt64) {
    state.withLock { $0.leaving[id] = leave }
  }

  /// Removes the closure of a reader that has given its messages back, or has begun to.
  func removeLeaving(_ id: UInt64) {
    let (removed, closing) = state.withLock { state in
      (state.leaving.removeValue(forKey: id), state.closing.removeValue(forKey: id))
    }
    withExtendedLifetime(removed) {}
    for call in closing ?? [] { call.resume() }
  }

  /// Waits for a reader that another thread is releasing.
  private func release(of id: UInt64) async {
    await withCheckedContinuation { continuation in
      let isReleased = state.withLock { state in
        guard state.leaving[id] != nil else { return true }
        state.closing[id, default: []].append(continuation)
        return false
      }
      if isReleased { continuation.resume() }
    }
  }

  /// Adds a buffer for the messages of a channel.
  func add(_ buffer: ChannelBuffer, for channel: String, _ id: UInt64) {
    state.withLock { $0.channels[channel, default: [:]][id] = buffer }
  }

  /// Removes a buffer, and unsubscribes from the channel after the last one.
  func removeBuffer(for channel: String, _ id: UInt64) {
    let (removed, isLast) = state.withLock { state -> (ChannelBuffer?, Bool) in
      let removed = state.channels[channel]?.removeValue(forKey: id)
      let isLast = removed != nil && state.channels[channel]?.isEmpty == true
      if isLast { state.channels[channel] = nil }
      return (removed, isLast && state.isConnected && !state.isClosed)
    }
    withExtendedLifetime(removed) {}
    guard isLast else { return }
    Task.detached { [self] in
      guard state.withLock({ $0.channels[channel] == nil }) else { return }
      _ = try? await send(RedisCommand("UNSUBSCRIBE", [.text(channel)]))
      // A reader that has subscribed meanwhile can be unsubscribed as well: it begins again.
      let others = state.withLock { $0.channels[channel]?.values.map(\.self) ?? [] }
      for buffer in others { buffer.break() }
    }
  }

  /// Whether a reader of a stream has read everything, and waits.
  func hasIdleReader(of key: String) -> Bool {
    state.withLock { $0.bells[key]?.values.contains(where: \.isAwaited) ?? false }
  }

  /// Wakes the readers of a stream.
  func ring(_ key: String) {
    let bells = state.withLock { $0.bells[key]?.values.map(\.self) ?? [] }
    for bell in bells { bell.ring() }
  }
}
