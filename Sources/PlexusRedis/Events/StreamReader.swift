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
  /// Whether it has to be compared again over the same connection.
  private var mustCompare = false
  /// Whether a loss of the end of the stream was reported that the next publisher reports as well.
  private var hasReportedLoss = false
  /// The deliveries that are ready, the next one last.
  private var waiting: [LinkDelivery] = []
  private var ahead = ReadAhead(limit: 1_024)
  /// The reading of the messages behind the ones that wait, which arrive while these are handled.
  private var following: Reading?

  /// The reading of the messages after a position.
  private struct Reading: Sendable {
    let position: LinkPosition
    /// The connection over which they are read, or an earlier one.
    let generation: Int
    let entries: Task<[MessageFormat.Entry], any Error>
  }

  init(_ events: RedisEvents, _ names: TopicNames, after position: LinkPosition?) {
    self.events = events
    self.names = names
    place = position.map { position in
      events.recall(.everyNode, of: names.stream, at: position)
        ?? RedisEvents.Place(.everyNode, of: names.stream, position: position)
    }
    id = events.makeReaderID()
    events.add(bell, for: names.stream, id)
  }

  deinit {
    following?.entries.cancel()
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
      let (latest, id) = try await events.survey(names.stream, at: nil)
      start = latest
      place = RedisEvents.Place(.everyNode, of: names.stream, position: start, id: id)
    }
    isConnected = true
    return .connected(at: start)
  }

  private func read(after place: RedisEvents.Place) async throws {
    let current = events.generation
    guard current == generation, !mustCompare else { return try await resume(after: place) }
    let position = place.position
    let entries = try await entries(after: position, over: current)
    var latest = entries.last?.position
    if entries.isEmpty { latest = try await events.survey(names.stream, at: nil).latest }
    // The replies can be those of another server.
    guard current == events.generation else { return }
    guard let first = entries.first?.position else {
      if let latest, latest < position {
        // The stream was removed.
        lose(latest)
      } else if latest == position {
        // The reading of the stream makes the server announce its next change.
        await bell.wait(atMost: nil)
      } else {
        // The messages after the place were removed, or came between the two commands: one script compares.
        mustCompare = true
      }
      return
    }
    var isTrimmed = false
    if !position.isFollowed(by: first) {
      isTrimmed = try await events.range(
        names.stream,
        from: "\(position)",
        to: "\(position)",
        count: 1
      ).isEmpty
    }
    let isFull = entries.count >= ahead.count
    ahead.note(messages: entries.count, bytes: entries.reduce(0) { $0 + $1.size })
    deliver(entries, after: position, isTrimmed: isTrimmed)
    guard isFull, let latest else { return }
    // It does not run on the actor of the reader, which delivers messages meanwhile.
    let task = Task.detached { [events, names, count = ahead.count] in
      try await events.range(names.stream, from: "(\(latest)", to: "+", count: count)
    }
    following = Reading(position: latest, generation: current, entries: task)
  }

  /// Returns the messages after a position, which may be on their way already.
  private func entries(
    after position: LinkPosition,
    over generation: Int
  ) async throws -> [MessageFormat.Entry] {
    if let reading = following.take(), reading.position == position,
      reading.generation == generation
    {
      let known = await withTaskCancellationHandler {
        try? await reading.entries.value
      } onCancel: {
        reading.entries.cancel()
      }
      // Meanwhile there can be some, or the server can have recovered.
      if let known, !known.isEmpty { return known }
    }
    return try await events.range(names.stream, from: "(\(position)", to: "+", count: ahead.count)
  }

  /// Compares the place over a new connection, and reads the next message, which can be too large for a reply.
  private func resume(after place: RedisEvents.Place) async throws {
    let current = events.generation
    let reply = try await events.run(
      TopicScripts.resume,
      [names.stream],
      [.text("\(place.position)"), .number(Int64(events.largestEntry))]
    )
    // The reply can be that of another server.
    guard current == events.generation else { return }
    guard let parts = reply.elements, parts.count >= 2, let latest = LinkPosition(parts[0]) else {
      throw TierError.unexpectedReply
    }
    // Only the loss that was reported over the connection before is the one that a publisher reports as well.
    if generation != current { hasReportedLoss = false }
    (generation, mustCompare) = (current, false)
    let id = RedisEvents.id(of: parts[1], at: place.position)
    guard !place.isLost(latest: latest, id: id) else {
      self.place?.id = id
      return lose(latest)
    }
    if let id { self.place?.id = id }
    guard parts.count == 3 else {
      if latest > place.position { skip(to: latest, from: place.position) }
      return
    }
    guard let next = parts[2].elements, next.count == 3,
      let entry = MessageFormat.Entry(
        id: next[0],
        fields: next[1],
        isTooLarge: next[2].integer == 1
      )
    else { return }
    deliver([entry], after: place.position, isTrimmed: id == nil)
  }

  private func deliver(
    _ entries: [MessageFormat.Entry],
    after position: LinkPosition,
    isTrimmed: Bool
  ) {
    var deliveries: [LinkDelivery] = []
    if let first = entries.first?.position, isTrimmed, !position.isFollowed(by: first) {
      deliveries.append(.gap(lost: position.positions(before: first)))
    }
    for entry in entries {
      if entry.isAfterLoss {
        if !hasReportedLoss, deliveries.last != .gap(lost: nil) {
          deliveries.append(.gap(lost: nil))
        }
        hasReportedLoss = false
      }
      deliveries.append(.message(entry.message, at: entry.position, attempt: 1))
      place?.position = entry.position
      place?.id = entry.message.id
    }
    waiting = deliveries.reversed()
  }

  /// Reports that all messages after a position were removed, and continues at the end of the stream.
  private func skip(to latest: LinkPosition, from position: LinkPosition) {
    let end = LinkPosition(epoch: latest.epoch, number: latest.number &+ 1)
    waiting = [.gap(lost: position.positions(before: end))]
    place = RedisEvents.Place(.everyNode, of: names.stream, position: latest)
  }

  /// Reports that the server has lost messages, and continues behind the ones that were read, or at its end.
  private func lose(_ latest: LinkPosition) {
    guard let position = place?.position else { return }
    waiting = [.gap(lost: nil)]
    hasReportedLoss = latest < position
    guard hasReportedLoss else { return }
    place = RedisEvents.Place(.everyNode, of: names.stream, position: latest)
    // The next one is delivered first.
    waiting = [.connected(at: latest), .gap(lost: nil)]
  }
}
