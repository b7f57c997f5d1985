internal import Plexus

/// The reading of a topic by a node that gets every message.
actor StreamReader {
  private let events: RedisEvents
  private nonisolated let names: TopicNames
  private nonisolated let id: UInt64
  private let bell = Bell()
  /// The position up to which the stream was read; `nil` for its end.
  private var position: LinkPosition?
  private var isConnected = false
  /// The deliveries that are ready, the next one last.
  private var waiting: [LinkDelivery] = []
  private var ahead = ReadAhead(limit: 1_024)

  init(_ events: RedisEvents, _ names: TopicNames, after position: LinkPosition?) {
    self.events = events
    self.names = names
    self.position = position
    id = events.makeReaderID()
    events.add(bell, for: names.stream, id)
  }

  deinit {
    events.removeBell(for: names.stream, id)
  }

  func next() async throws -> LinkDelivery? {
    while !Task.isCancelled, !events.isClosed {
      if let delivery = waiting.popLast() { return delivery }
      guard isConnected, let position else {
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
      try await read(after: position)
    }
    return nil
  }

  private func read(after position: LinkPosition) async throws {
    let count = ahead.count
    let entries = try await range(from: "(\(position)", to: "+", count: count)
    guard let first = entries.first?.position else {
      let latest = try await events.latestPosition(of: names.stream)
      if latest < position {
        // The engine has lost the stream, or its latest part.
        self.position = latest
        waiting = [.gap(lost: nil)]
      } else if latest == position {
        // The reading of the stream makes the server announce its next change.
        await bell.wait(atMost: nil)
      }
      return
    }
    var deliveries: [LinkDelivery] = []
    if !position.isFollowed(by: first) {
      let isThere = try await !range(from: "\(position)", to: "\(position)", count: 1).isEmpty
      if !isThere { deliveries.append(.gap(lost: position.positions(before: first))) }
    }
    deliveries += entries.map { .message($0.message, at: $0.position, attempt: 1) }
    ahead.note(messages: entries.count, bytes: entries.reduce(0) { $0 + $1.size })
    self.position = entries.last?.position
    waiting = deliveries.reversed()
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
