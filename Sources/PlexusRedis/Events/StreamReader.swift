internal import Plexus

/// The reading of a topic by a node that gets every message.
///
/// A server that was restarted with old data can give positions again. Each connection is therefore used only after the
/// message at the own position was compared with the one that was read.
actor StreamReader {
  private let events: RedisEvents
  private nonisolated let names: TopicNames
  private nonisolated let id: UInt64
  private let bell = Bell()
  /// The position up to which the stream was read; `nil` for its end.
  private var position: LinkPosition?
  /// The id of the message at the position, if it was read.
  private var latestID: String?
  private var isConnected = false
  /// The connection over which the position was compared.
  private var generation: Int?
  /// The deliveries that are ready, the next one last.
  private var waiting: [LinkDelivery] = []
  private var ahead = ReadAhead(limit: 1_024)

  init(_ events: RedisEvents, _ names: TopicNames, after position: LinkPosition?) {
    self.events = events
    self.names = names
    self.position = position
    latestID = position.flatMap { events.recall($0, of: names.stream) }
    id = events.makeReaderID()
    events.add(bell, for: names.stream, id)
  }

  deinit {
    events.removeBell(for: names.stream, id)
  }

  func next() async throws -> LinkDelivery? {
    do {
      while !Task.isCancelled, !events.isClosed {
        if let delivery = waiting.popLast() { return delivery }
        guard isConnected, let position else { return try await connect() }
        try await read(after: position)
      }
      return nil
    } catch {
      // The next reader continues here.
      if let position, let latestID {
        events.remember(
          RedisEvents.Place(stream: names.stream, position: position, id: latestID)
        )
      }
      throw error
    }
  }

  private func connect() async throws -> LinkDelivery? {
    try await events.waitForConnection(bell)
    guard !Task.isCancelled, !events.isClosed else { return nil }
    let start: LinkPosition
    if let position {
      start = position
    } else {
      start = try await events.latestPosition(of: names.stream)
    }
    (position, isConnected) = (start, true)
    return .connected(at: start)
  }

  private func read(after position: LinkPosition) async throws {
    let current = events.generation
    if current != generation, try await hasGoneBack(position) {
      generation = current
      latestID = nil
      waiting = [.gap(lost: nil)]
      return
    }
    let count = ahead.count
    let entries = try await range(from: "(\(position)", to: "+", count: count)
    // The replies can be those of another server.
    guard current == events.generation else { return }
    generation = current
    guard let first = entries.first?.position else {
      let latest = try await events.latestPosition(of: names.stream)
      if latest < position {
        // The engine has lost the stream, or its latest part.
        self.position = latest
        latestID = nil
        // The next one is delivered first.
        waiting = [.connected(at: latest), .gap(lost: nil)]
      } else if latest == position {
        // The reading of the stream makes the server announce its next change.
        await bell.wait(atMost: nil)
      }
      return
    }
    var deliveries: [LinkDelivery] = []
    if !position.isFollowed(by: first) {
      let isThere = try await message(at: position) != nil
      if !isThere { deliveries.append(.gap(lost: position.positions(before: first))) }
    }
    for entry in entries {
      if entry.isAfterLoss, deliveries.last != .gap(lost: nil) {
        deliveries.append(.gap(lost: nil))
      }
      deliveries.append(.message(entry.message, at: entry.position, attempt: 1))
    }
    ahead.note(messages: entries.count, bytes: entries.reduce(0) { $0 + $1.size })
    self.position = entries.last?.position
    latestID = entries.last?.message.id
    waiting = deliveries.reversed()
  }

  /// Returns whether the server has another message in place of the one that was read last.
  private func hasGoneBack(_ position: LinkPosition) async throws -> Bool {
    guard let latestID, let found = try await message(at: position) else { return false }
    return found.id != latestID
  }

  private func message(at position: LinkPosition) async throws -> LinkMessage? {
    try await range(from: "\(position)", to: "\(position)", count: 1).first?.message
  }

  private func range(
    from start: String,
    to end: String,
    count: Int
  ) async throws -> [MessageFormat.Entry] {
    let reply = try await events.send(
      RedisCommand(
        "XRANGE",
        [.text(names.stream), .text(start), .text(end), "COUNT", .number(Int64(count))]
      )
    )
    guard let elements = reply.elements else { throw TierError.unexpectedReply }
    return elements.compactMap { MessageFormat.Entry($0) }
  }
}
