internal import Foundation
internal import Plexus
internal import PlexusSupport

/// The events of an engine, over a connection of its own that begins with the first call.
///
/// In a cluster, it has a connection to each master of its topics.
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
    let traffic: (all: TrafficState, reconnections: Int)
  }

  /// The longest time between two questions for the role of the server.
  private static let longestPace = Duration.seconds(1)
  /// The shortest one, which a very short time for events has.
  private static let shortestPace = Duration.milliseconds(100)

  let codec: any LinkCodec = Codec()
  /// The name of this process, which no other has.
  let node = String(UInt64.random(in: .min ... .max), radix: 36)
  /// The connections.
  let router: Router
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
  let state = Locked(State())

  /// - Parameters:
  ///   - settings: The settings of the engine's connections.
  ///   - options: The options of the engine.
  init(_ settings: RedisConnection.Settings, _ options: RedisOptions) {
    precondition(options.eventLimit >= 1_000, "The event limit must be at least 1,000 messages")
    var settings = settings
    settings.name += "-events"
    settings.commandTimeout = options.eventTimeout
    router = Router(settings)
    timeout = options.eventTimeout
    limit = options.eventLimit
    trimsWhenBehind = options.whenGroupIsBehind == .trim
    outbox = Locked(EventOutboxState(limit: settings.outboxBytes))
    router.observe { [weak self] in self?.receive($0, on: $1) }
  }

  deinit {
    state.withLock { $0.heart }?.cancel()
  }

  // MARK: - Connection

  /// Returns the way of the commands of a topic: the first one begins the connection.
  ///
  /// - Parameter key: A key of the topic.
  /// - Returns: The way.
  /// - Throws: An error if the link was closed, or the process has no thread or file descriptor left.
  func route(for key: String) throws -> Route {
    let slot = router.cluster == nil ? 0 : SlotsState.slot(of: key)
    let (known, isClosed) = state.withLock { ($0.routes[slot], $0.isClosed) }
    // Readers use it until they have released their messages.
    if let known { return known }
    guard !isClosed else { throw RedisConnectionError.closed }
    // Otherwise, it would replace a state of the first connection.
    if health.value == nil { health.follow { state.withLock { $0.health.health } } }
    try router.begin()
    let route = state.withLock { state in
      if let known = state.routes[slot] { return known }
      let new = Route(router, for: key)
      state.routes[slot] = new
      return new
    }
    route.begin(self)
    beginBeating()
    return route
  }

  /// The time between two heartbeats.
  private var pace: Duration { max(Self.shortestPace, min(timeout, Self.longestPace)) }

  private func beginBeating() {
    state.withLock { [pace] state in
      guard state.heart == nil, !state.isClosed else { return }
      state.heart = Task.detached { [weak self] in
        while (try? await Task.sleep(for: pace)) != nil {
          guard self?.beat() != nil else { return }
        }
      }
    }
  }

  /// Asks the server for its role, so that a connection that was lost without a notice is replaced, or one to a server that
  /// was demoted.
  ///
  /// In a cluster, each topic asks for its stream instead, so that it follows its slot.
  ///
  /// A reader sends nothing while it waits for an announcement.
  func beat() {
    let (keys, routes) = state.withLock { (Array($0.bells.keys), Array($0.routes.values)) }
    guard router.cluster != nil else {
      if !keys.isEmpty, router.masters.contains(where: { router.isConnected($0.number) }) {
        router.probe()
      }
      return
    }
    for key in keys where key.hasSuffix(TopicNames.streamSuffix) {
      let words: [RedisCommand.Argument] = [.text(key), "0", "0"]
      let ringing = { @Sendable [weak self] in self?.ring(key) ?? () }
      try? route(for: key).probe(RedisCommand("XRANGE", words), onRedirection: ringing) {}
    }
    for route in routes { route.update() }
    let used = Set(routes.compactMap(\.master?.number))
    for number in router.dismiss(except: used) { update { $0.remove(number) } }
    router.search(for: used)
    router.forgetNotes(after: pace)
    update { $0.note(router.slotWithoutMaster(of: routes), on: EngineCore.slotsNumber) }
  }

  /// Follows the map of the slots.
  func followSlots() {
    for route in state.withLock({ Array($0.routes.values) }) { route.update() }
  }

  /// The state and the load of the link.
  var status: Status {
    let (unacknowledged, unannounced) = state.withLock { state in
      let held = state.members.values.reduce(state.acknowledgements.count) { $0 + $1.held }
      return (held, state.unannounced)
    }
    let (unconfirmed, waiting) = outbox.withLock { ($0.count, $0.bytes) }
    let load = load
    let connection = EngineStatus.Connection(
      (load.commands, load.bytes + waiting),
      health.value
    )
    return Status(
      connection: connection,
      unconfirmed: unconfirmed,
      unacknowledged: unacknowledged,
      unannounced: unannounced,
      traffic: router.traffic
    )
  }

  /// Records that messages were stored and not announced.
  func noteUnannounced(_ count: Int) {
    state.withLock { $0.unannounced += count }
  }

  /// The commands without a reply, and the bytes that wait to be sent.
  var load: (commands: Int, bytes: Int) { router.load }

  /// Whether the link was closed.
  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Waits until the server answers.
  ///
  /// - Parameters:
  ///   - key: A key of the topic.
  ///   - bell: A signal of the reader, which rings at each change of the connection.
  /// - Throws: An error if the link was closed, or the process has no thread or file descriptor left.
  func waitForConnection(for key: String, _ bell: Bell) async throws {
    let route = try route(for: key)
    while !Task.isCancelled {
      guard !route.isConnected, !isClosed else { return }
      // In a cluster, another master can get the slot.
      if router.cluster != nil {
        do {
          _ = try await route.passage()
        } catch let error as SystemError {
          throw error
        } catch {}
      }
      await bell.wait(atMost: router.cluster == nil ? nil : Self.longestPace)
    }
  }

  func run(
    _ script: RedisScript,
    _ keys: [String],
    _ arguments: [RedisCommand.Argument]
  ) async throws -> RESPValue {
    try await script.run(on: route(for: keys[0]), keys: keys, arguments)
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
      case .cluster: error.isRedirection
      default: ["LOADING", "BUSY"].contains(error.code)
      }
    default: false
    }
  }

  /// Releases the messages that readers have, ends their streams, and ends the connection.
  func close() async {
    let (leaving, bells, heart) = state.withLock { state in
      state.isClosed = true
      return (state.members.compactMapValues(\.leave), state.allBells, state.heart)
    }
    heart?.cancel()
    for bell in bells { bell.ring() }
    for (id, leave) in leaving where await !leave() { await release(of: id) }
    for departure in state.withLock({ Array($0.departures.values) }) { await departure.value }
    await router.close()
    update { $0.close() }
  }

  // MARK: - Reading

  /// Returns messages of a stream from a position on, the oldest first.
  func range(
    _ stream: String,
    from start: LinkPosition,
    count: Int
  ) async throws -> [MessageFormat.Entry] {
    let reply = try await route(for: stream).send(
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
  var largestEntry: Int { router.settings.maximumReplyBytes / 16 * 15 }
}
