internal import Plexus

/// The reading of a topic by an ephemeral connection: messages arrive on a channel.
actor ChannelReader {
  private let events: RedisEvents
  private nonisolated let names: TopicNames
  private nonisolated let id: UInt64
  private let bell: Bell
  private let buffer: ChannelBuffer
  /// The latest message; `nil` before the reading has begun.
  private var place: RedisEvents.Place?
  /// A message behind a gap, or a gap behind the beginning.
  private var waiting: LinkDelivery?
  private var foreignCount = 0

  init(_ events: RedisEvents, _ names: TopicNames) {
    self.events = events
    self.names = names
    bell = Bell()
    buffer = ChannelBuffer(limit: 16 << 20, bell)
    id = events.makeReaderID()
    events.add(bell, for: names.stream, id)
  }

  deinit {
    events.removeBell(for: names.stream, id)
    events.removeBuffer(for: names.channel, id)
  }

  func next() async throws -> LinkDelivery? {
    do {
      return try await nextDelivery()
    } catch {
      // The next reader recognizes a server with old data.
      if let place { events.remember(place) }
      throw error
    }
  }

  private func nextDelivery() async throws -> LinkDelivery? {
    guard let position = place?.position else {
      return try await connect().map { .connected(at: $0) }
    }
    if let delivery = waiting.take() { return delivery }
    while !Task.isCancelled, !events.isClosed {
      switch try buffer.take() {
      case .message(let message, let next):
        // A message that was published twice, or before the connection.
        guard next > position else { continue }
        let delivery = LinkDelivery.message(message, at: next, attempt: 1)
        if position.epoch == next.epoch, position.isFollowed(by: next) {
          move(to: next, message)
          return delivery
        }
        // Another program can write any position, behind which all messages would be missed.
        guard try await events.survey(names.stream, at: nil).latest >= next else {
          return .message(message, at: position, attempt: 1)
        }
        move(to: next, message)
        // A new epoch on the same connection begins with its first message.
        guard next.number > 0 || next.epoch == position.epoch else { return delivery }
        waiting = delivery
        return .gap(lost: position.positions(before: next))
      case .foreign(let bytes):
        foreignCount += 1
        let name = "\(position).\(foreignCount)"
        let message = LinkMessage(id: name, type: "", version: 0, origin: "", body: bytes)
        return .message(message, at: position, attempt: 1)
      case nil:
        await bell.wait(atMost: nil)
      }
    }
    return nil
  }

  /// Subscribes to the channel.
  ///
  /// - Returns: The position after which messages arrive.
  private func connect() async throws -> LinkPosition? {
    try await events.waitForConnection(bell)
    guard !Task.isCancelled, !events.isClosed else { return nil }
    events.add(buffer, for: names.channel, id)
    _ = try await events.send(RedisCommand("SUBSCRIBE", [.text(names.channel)]))
    var (start, id) = try await events.survey(names.stream, at: nil)
    // Messages between the two commands have arrived already.
    if case .message(_, let first) = buffer.first, first <= start {
      start =
        first.number == 0
        ? .start : LinkPosition(epoch: first.epoch, number: first.number - 1)
      id = try await events.survey(names.stream, at: start).id
    }
    let known = events.recall(.ephemeral, of: names.stream, at: start)
    if known?.isLost(latest: start, id: id) == true { waiting = .gap(lost: nil) }
    place = RedisEvents.Place(.ephemeral, of: names.stream, position: start, id: id)
    return start
  }

  private func move(to position: LinkPosition, _ message: LinkMessage) {
    place?.position = position
    place?.id = message.id
  }
}
