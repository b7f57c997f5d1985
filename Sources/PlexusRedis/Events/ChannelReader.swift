internal import Plexus

/// The reading of a topic by an ephemeral connection: messages arrive on a channel.
actor ChannelReader {
  private static let largestBatch = 256

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
  /// The error that ends the reading behind the deliveries before it.
  private var failure: (any Error)?

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
    try await batch(limit: 1)?.first
  }

  /// Returns the deliveries that are ready, once there are some.
  func nextBatch() async throws -> [LinkDelivery]? {
    try await batch(limit: Self.largestBatch)
  }

  private func batch(limit: Int) async throws -> [LinkDelivery]? {
    if let failure = failure.take() { throw failure }
    var deliveries: [LinkDelivery] = []
    do {
      guard place != nil else { return try await connect().map { [.connected(at: $0)] } }
      while !Task.isCancelled, !events.isClosed {
        if deliveries.count < limit, let delivery = try await nextReady() {
          deliveries.append(delivery)
        } else if deliveries.isEmpty {
          await bell.wait(atMost: nil)
        } else {
          return deliveries
        }
      }
      return nil
    } catch {
      // The next reader recognizes a server with old data.
      if let place { events.remember(place) }
      guard !deliveries.isEmpty else { throw error }
      failure = error
      return deliveries
    }
  }

  /// Returns the next delivery; `nil` if none is ready.
  private func nextReady() async throws -> LinkDelivery? {
    if let delivery = waiting.take() { return delivery }
    while let position = place?.position, let element = try buffer.take() {
      switch element {
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
