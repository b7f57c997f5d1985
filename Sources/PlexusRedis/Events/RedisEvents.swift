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

  /// The latest message of a reader.
  struct Place: Hashable, Sendable {
    let stream: String
    /// The group of the reader, if it has one.
    var group: String?
    var position: LinkPosition
    /// The id of the message, if it was read.
    var id: String?
  }

  private struct State: Sendable {
    var connection: RedisConnection?
    var isConnected = false
    var isClosed = false
    var lastID: UInt64 = 0
    /// The signals of readers, by the key that they read.
    var bells: [String: [UInt64: Bell]] = [:]
    var channels: [String: [UInt64: ChannelBuffer]] = [:]
    /// The ends of groups' readers when the link is closed.
    var leaving: [UInt64: @Sendable () async -> Void] = [:]
    /// The number of messages that each reader of a group has received and not finished.
    var held: [UInt64: Int] = [:]
    /// The number of connections so far.
    var generation = 0
    var heart: Task<Void, Never>?
    /// The latest messages of readers that have ended, by which their successors recognize a server with old data.
    var places: [Place] = []

    var allBells: [Bell] {
      bells.values.flatMap(\.values)
    }
  }

  let codec: any LinkCodec = Codec()
  /// The name of this process, which no other has.
  let node = String(UInt64.random(in: .min ... .max), radix: 36)
  private let settings: RedisConnection.Settings
  /// The time for which publishing is attempted.
  let timeout: Duration
  /// The number of messages that a topic keeps.
  let limit: Int
  /// The messages that are being published.
  let outbox: Locked<EventOutboxState<Publisher>>
  /// The state of the connection; `nil` before its first use.
  let health = CurrentValue<EngineHealth?>(nil)
  /// Held while a connection is made.
  private let making = Locked(())
  private let state = Locked(State())

  /// - Parameters:
  ///   - settings: The settings of the engine's connections.
  ///   - options: The options of the engine.
  init(_ settings: RedisConnection.Settings, _ options: RedisOptions) {
    precondition(options.eventLimit >= 1_000, "The event limit must be at least 1,000 messages")
    var settings = settings
    settings.name = "plexus-events"
    settings.commandTimeout = options.eventTimeout
    self.settings = settings
    timeout = options.eventTimeout
    limit = options.eventLimit
    outbox = Locked(EventOutboxState(limit: settings.outboxBytes))
  }

  deinit {
    state.withLock { $0.heart }?.cancel()
  }

  // MARK: - Connection

  /// The connection, which is begun by the first call.
  ///
  /// - Throws: An error if the link was closed, or the process has no thread or file descriptor left.
  private func connection() throws -> RedisConnection {
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
      let heart = Task.detached { [weak self, timeout] in
        while (try? await Task.sleep(for: timeout)) != nil {
          guard await self?.beat() != nil else { return }
        }
      }
      state.withLock { ($0.connection, $0.heart) = (new, heart) }
      return new
    }
  }

  /// Asks for an answer, so that a connection that was lost without a notice is replaced.
  ///
  /// A reader sends nothing while it waits for an announcement.
  private func beat() async {
    guard state.withLock({ $0.isConnected && !$0.bells.isEmpty }) else { return }
    _ = try? await send(RedisCommand("PING"))
  }

  /// The state and the load of the link.
  var status: (connection: EngineStatus.Connection, unconfirmed: Int, unacknowledged: Int) {
    let held = state.withLock { $0.held.values.reduce(0, +) }
    let (unconfirmed, waiting) = outbox.withLock { ($0.count, $0.bytes) }
    let load = load
    let connection = EngineStatus.Connection(
      health: health.value,
      outboxBytes: load.bytes + waiting,
      unansweredCommands: load.commands
    )
    return (connection, unconfirmed, held)
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
  private static func isTemporary(_ error: any Error) -> Bool {
    switch error {
    case let error as RedisConnectionError:
      switch error {
      case .unreachable, .lost, .timedOut: true
      case .noEncryption, .refused, .outboxFull, .waitedTooLong, .closed: false
      }
    case let error as RedisError:
      ["LOADING", "BUSY", "TRYAGAIN", "MASTERDOWN"].contains(error.code)
    default: false
    }
  }

  /// Releases the messages that readers have, ends their streams, and ends the connection.
  func close() async {
    // A connection that is being made is closed as well.
    let (leaving, bells, heart) = making.withLock { _ in
      state.withLock { state in
        state.isClosed = true
        return (state.leaving.values, state.allBells, state.heart)
      }
    }
    heart?.cancel()
    for bell in bells { bell.ring() }
    for leave in leaving { await leave() }
    let connection = state.withLock { $0.connection.take() }
    await connection?.close()
    health.value = .closed
  }

  // MARK: - Groups

  func acknowledge(
    _ position: LinkPosition,
    of topic: String,
    group: String
  ) async throws {
    let key = RedisCommand.Argument.text(TopicNames(topic).stream)
    let command = RedisCommand("XACK", [key, .text(group), .text("\(position)")])
    _ = try await retrying { try await send(command) }
  }

  func reject(
    _ position: LinkPosition,
    of topic: String,
    group: String,
    because reason: String
  ) async throws {
    let letters = TopicNames(deadLetterTopic(of: topic, group: group))
    defer { ring(letters.stream) }
    let keys = [TopicNames(topic).stream, letters.stream]
    let arguments: [RedisCommand.Argument] = [
      .text(group), .text("\(position)"), .text(reason), .number(Int64(limit)),
      .text(letters.channel),
    ]
    _ = try await retrying { try await run(TopicScripts.reject, keys, arguments) }
  }

  // MARK: - Reading

  func deliveries(
    of topic: String,
    _ mode: LinkMode
  ) -> AsyncThrowingStream<LinkDelivery, any Error> {
    switch mode {
    case .ephemeral:
      let reader = ChannelReader(self, TopicNames(topic))
      return AsyncThrowingStream { try await reader.next() }
    case .everyNode(let position):
      let reader = StreamReader(self, TopicNames(topic), after: position)
      return AsyncThrowingStream { try await reader.next() }
    case .oneNode(let group, let retryAfter, _):
      let reader = GroupReader(self, TopicNames(topic), group: group, retryAfter: retryAfter)
      return AsyncThrowingStream { try await reader.next() }
    case .publishOnly:
      return AsyncThrowingStream { nil }
    }
  }

  /// Returns messages of a stream, the oldest first.
  func range(
    _ stream: String,
    from start: String,
    to end: String,
    count: Int
  ) async throws -> [MessageFormat.Entry] {
    let reply = try await send(
      RedisCommand(
        "XRANGE",
        [.text(stream), .text(start), .text(end), "COUNT", .number(Int64(count))]
      )
    )
    guard let elements = reply.elements else { throw TierError.unexpectedReply }
    return elements.compactMap { MessageFormat.Entry($0) }
  }

  /// Returns the position of the latest message of a stream.
  func latestPosition(of stream: String) async throws -> LinkPosition {
    let reply = try await send(RedisCommand("XREVRANGE", [.text(stream), "+", "-", "COUNT", 1]))
    guard let entries = reply.elements else { throw TierError.unexpectedReply }
    return entries.first.flatMap { MessageFormat.Entry($0)?.position } ?? .start
  }

  // MARK: - Readers

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

  /// Records the latest message of a reader that ends.
  func remember(_ place: Place) {
    state.withLock { state in
      if state.places.count == 64 { state.places.removeFirst() }
      state.places.append(place)
    }
  }

  /// Returns the latest message of an earlier reader.
  ///
  /// - Parameters:
  ///   - stream: The stream.
  ///   - group: The group, if the readers have one.
  ///   - position: The position up to which the reader has read; `nil` for any.
  /// - Returns: The message, if it is known.
  func recall(_ stream: String, group: String?, at position: LinkPosition?) -> Place? {
    state.withLock { state in
      let index = state.places.lastIndex { place in
        place.stream == stream && place.group == group
          && (position == nil || place.position == position)
      }
      return index.map { state.places.remove(at: $0) }
    }
  }

  /// Returns whether the server has lost the latest message of a reader, or given its position again.
  ///
  /// The end of the stream comes first: a position before it is not given later.
  func hasGoneBack(behind place: Place) async throws -> Bool {
    guard try await latestPosition(of: place.stream) >= place.position else { return true }
    guard let id = place.id else { return false }
    let position = "\(place.position)"
    let found = try await range(place.stream, from: position, to: position, count: 1)
    // A message that was trimmed is not there.
    return found.first.map { $0.message.id != id } ?? false
  }

  /// Calls a closure when the link is closed.
  func add(_ leave: @escaping @Sendable () async -> Void, _ id: UInt64) {
    state.withLock { $0.leaving[id] = leave }
  }

  func removeLeaving(_ id: UInt64) {
    let removed = state.withLock { $0.leaving.removeValue(forKey: id) }
    withExtendedLifetime(removed) {}
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
      _ = try? await send(RedisCommand("UNSUBSCRIBE", [.text(channel)]))
      // A reader that has subscribed meanwhile can be unsubscribed as well: it begins again.
      let others = state.withLock { $0.channels[channel]?.values.map(\.self) ?? [] }
      for buffer in others { buffer.break() }
    }
  }

  /// Wakes the readers of a stream.
  func ring(_ key: String) {
    let bells = state.withLock { $0.bells[key]?.values.map(\.self) ?? [] }
    for bell in bells { bell.ring() }
  }

  // MARK: - Events of the connection

  private func receive(_ event: RedisConnection.Event) {
    switch event {
    case .connected:
      // Announcements since the last connection were lost.
      health.value = .connected
      let bells = state.withLock { state in
        state.isConnected = true
        state.generation += 1
        return state.allBells
      }
      for bell in bells { bell.ring() }
    case .disconnected(let error):
      health.value = .isolated(reason: error.description)
      let (bells, buffers) = state.withLock { state in
        state.isConnected = false
        return (state.allBells, state.channels.values.flatMap(\.values))
      }
      for buffer in buffers { buffer.break() }
      for bell in bells { bell.ring() }
    case .push(let elements):
      receive(elements)
    }
  }

  private func receive(_ push: [RESPValue]) {
    switch push.first?.text {
    case "invalidate" where push.count == 2:
      guard let keys = push[1].elements else {
        for bell in state.withLock({ $0.allBells }) { bell.ring() }
        return
      }
      for key in keys { ring(key.text ?? "") }
    case "message" where push.count == 3:
      guard let channel = push[1].text, let bytes = push[2].bytes else { return }
      let buffers = state.withLock { $0.channels[channel]?.values.map(\.self) ?? [] }
      for buffer in buffers { buffer.append(bytes) }
    default:
      break
    }
  }
}
