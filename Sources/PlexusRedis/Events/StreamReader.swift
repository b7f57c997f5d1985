internal import Plexus

/// The reading of a topic by a node that gets every message.
///
/// A server that was restarted with old data can give positions again. The messages of a connection are therefore used
/// only after the one at the own position was compared with the one that was read.
actor StreamReader {
  private let events: RedisEvents
  private nonisolated let names: TopicNames
  private nonisolated let id: UInt64
  private let bell = Bell()
  /// The latest message; `nil` before the end of the stream is known, if the reading begins there.
  private var place: RedisEvents.Place?
  private var isConnected = false
  /// The connection over which the place was compared.
  private var generation: Int?
  /// The deliveries that are ready, the next one last.
  private var waiting: [LinkDelivery] = []
  private var ahead = ReadAhead(limit: 1_024)

  init(_ events: RedisEvents, _ names: TopicNames, after position: LinkPosition?) {
    self.events = events
    self.names = names
    place = position.map { position in
      events.recall(names.stream, group: nil, at: position)
        ?? RedisEvents.Place(stream: names.stream, position: position)
    }
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
        guard isConnected, let place else { return try await connect() }
        try await read(after: place)
      }
      return nil
    } catch {
      // The next reader continues here.
      if let place { events.remember(place) }
      throw error
    }
  }

  private func connect() async throws -> LinkDelivery? {
    try await events.waitForConnection(bell)
    guard !Task.isCancelled, !events.isClosed else { return nil }
    let start: LinkPosition
    if let place {
      start = place.position
    } else {
      start = try await events.latestPosition(of: names.stream)
      place = RedisEvents.Place(stream: names.stream, position: start)
    }
    isConnected = true
    return .connected(at: start)
  }

  private func read(after place: RedisEvents.Place) async throws {
    let current = events.generation
    if current != generation, try await events.hasGoneBack(behind: place) {
      return try await lose()
    }
    let position = place.position
    let entries = try await events.range(
      names.stream,
      from: "(\(position)",
      to: "+",
      count: ahead.count
    )
    var latest = entries.last?.position
    if entries.isEmpty { latest = try await events.latestPosition(of: names.stream) }
    // The replies can be those of another server.
    guard current == events.generation else { return }
    generation = current
    guard let first = entries.first?.position else {
      if let latest, latest < position {
        // The stream was removed.
        try await lose()
      } else if latest == position {
        // The reading of the stream makes the server announce its next change.
        await bell.wait(atMost: nil)
      }
      return
    }
    var deliveries: [LinkDelivery] = []
    if !position.isFollowed(by: first) {
      let own = try await events.range(
        names.stream,
        from: "\(position)",
        to: "\(position)",
        count: 1
      )
      if own.isEmpty { deliveries.append(.gap(lost: position.positions(before: first))) }
    }
    for entry in entries {
      if entry.isAfterLoss, deliveries.last != .gap(lost: nil) {
        deliveries.append(.gap(lost: nil))
      }
      deliveries.append(.message(entry.message, at: entry.position, attempt: 1))
      self.place?.position = entry.position
      self.place?.id = entry.message.id
    }
    ahead.note(messages: entries.count, bytes: entries.reduce(0) { $0 + $1.size })
    waiting = deliveries.reversed()
  }

  /// Reports that the server has lost messages, and continues behind the ones that were read, or at its end.
  private func lose() async throws {
    let latest = try await events.latestPosition(of: names.stream)
    guard let position = place?.position else { return }
    place?.id = nil
    waiting = [.gap(lost: nil)]
    guard latest < position else { return }
    place?.position = latest
    // The next one is delivered first.
    waiting = [.connected(at: latest), .gap(lost: nil)]
  }
}
