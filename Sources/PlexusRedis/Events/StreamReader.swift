internal import Plexus

/// The reading of a topic by a node that gets every message.
///
/// A server that was restarted with old data can give positions again, and messages can be removed before they are read.
/// The messages after the own position are therefore read together with the one at it: if this is the one that was read,
/// nothing is missing. Otherwise, a script compares.
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
  /// Whether the latest message is known to be small enough to be read again with the ones after it.
  private var isSmall = false
  /// Whether a loss of the end of the stream was reported that the next publisher reports as well.
  private var hasReportedLoss = false
  /// The deliveries that are ready.
  private var waiting: ArraySlice<LinkDelivery> = []
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
    try await fill() ? waiting.popFirst() : nil
  }

  /// Returns all deliveries that are ready, once there are some.
  func nextBatch() async throws -> [LinkDelivery]? {
    guard try await fill() else { return nil }
    defer { waiting = [] }
    return Array(waiting)
  }

  /// Waits until a delivery is ready.
  ///
  /// - Returns: Whether there is one; if not, the reading has ended.
  private func fill() async throws -> Bool {
    do {
      while !Task.isCancelled, !events.isClosed {
        guard waiting.isEmpty else { return true }
        if isConnected, let place {
          try await read(after: place)
        } else if let position = try await connect() {
          waiting = [.connected(at: position)]
        }
      }
      return false
    } catch {
      // The next reader continues here.
      if let place { events.remember(place) }
      throw error
    }
  }

  /// Connects to the server.
  ///
  /// - Returns: The position after which messages are read; `nil` if the reading has ended.
  private func connect() async throws -> LinkPosition? {
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
    return start
  }

  private func read(after place: RedisEvents.Place) async throws {
    let current = events.generation
    guard current == generation, isSmall else { return try await resume(after: place) }
    let entries = try await entries(from: place.position, over: current)
    // The reply can be that of another server.
    guard current == events.generation else { return }
    guard let first = entries.first, first.position == place.position,
      first.message.id == place.id
    else { return try await resume(after: place) }
    let new = entries.dropFirst()
    guard let latest = new.last else {
      // The reading of the stream makes the server announce its next change.
      return await bell.wait(atMost: nil)
    }
    let isFull = new.count >= ahead.count
    ahead.note(messages: new.count, bytes: new.reduce(0) { $0 + $1.size })
    deliver(new)
    guard isFull, isSmall else { return }
    // It does not run on the actor of the reader, which delivers messages meanwhile.
    let task = Task.detached { [events, names, count = ahead.count] in
      try await events.range(names.stream, from: latest.position, count: count + 1)
    }
    following = Reading(position: latest.position, generation: current, entries: task)
  }

  /// Returns the message at a position and the ones after it, which may be on their way already.
  private func entries(
    from position: LinkPosition,
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
      if let known, known.count > 1 { return known }
    }
    return try await events.range(names.stream, from: position, count: ahead.count + 1)
  }

  /// Compares the place, and reads the next message, which can be too large for a reply.
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
    generation = current
    let id = RedisEvents.id(of: parts[1], at: place.position)
    guard !place.isLost(latest: latest, id: id) else {
      self.place?.id = id
      return lose(latest)
    }
    if let id { self.place?.id = id }
    guard parts.count == 3 else {
      if latest > place.position { return skip(to: latest, from: place.position) }
      return await bell.wait(atMost: nil)
    }
    guard let next = parts[2].elements, next.count == 3,
      let entry = MessageFormat.Entry(
        id: next[0],
        fields: next[1],
        isTooLarge: next[2].integer == 1
      )
    else { throw TierError.unexpectedReply }
    // Between positions of different epochs, only messages that were removed tell that there were any.
    let isAfterGap =
      id == nil && !place.position.isFollowed(by: entry.position)
      && place.position.positions(before: entry.position) == nil
    deliver([entry], after: isAfterGap ? .gap(lost: nil) : nil)
    if next[2].integer == 1 { isSmall = false }
  }

  /// Makes messages ready to be delivered.
  private func deliver(
    _ entries: some Collection<MessageFormat.Entry>,
    after gap: LinkDelivery? = nil
  ) {
    var deliveries: [LinkDelivery] = []
    deliveries.reserveCapacity(entries.count + 1)
    if let gap { deliveries.append(gap) }
    for entry in entries {
      if let lost = place?.position.positions(before: entry.position) {
        deliveries.append(.gap(lost: lost))
      }
      if entry.isAfterLoss {
        if !hasReportedLoss, deliveries.last != .gap(lost: nil) {
          deliveries.append(.gap(lost: nil))
        }
        hasReportedLoss = false
      }
      deliveries.append(.message(entry.message, at: entry.position, attempt: 1))
      place?.position = entry.position
      place?.id = entry.message.id
      isSmall = entry.size <= ReadAhead.targetBytes
    }
    waiting = deliveries[...]
  }

  /// Reports that all messages after a position were removed, and continues at the end of the stream.
  private func skip(to latest: LinkPosition, from position: LinkPosition) {
    let end = LinkPosition(epoch: latest.epoch, number: latest.number &+ 1)
    waiting = [.gap(lost: position.positions(before: end))]
    (place, isSmall) = (RedisEvents.Place(.everyNode, of: names.stream, position: latest), false)
  }

  /// Reports that the server has lost messages, and continues behind the ones that were read, or at its end.
  private func lose(_ latest: LinkPosition) {
    guard let position = place?.position else { return }
    waiting = [.gap(lost: nil)]
    hasReportedLoss = latest < position
    guard hasReportedLoss else { return }
    (place, isSmall) = (RedisEvents.Place(.everyNode, of: names.stream, position: latest), false)
    waiting = [.gap(lost: nil), .connected(at: latest)]
  }
}
