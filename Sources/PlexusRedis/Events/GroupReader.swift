internal import Plexus

/// The reading of a topic by a node that shares its messages with the other nodes of a group.
///
/// The messages that were read are renewed until they are acknowledged, or the reader asks for the next one without an
/// acknowledgement. Messages that are not renewed are claimed by the readers of the group.
actor GroupReader {
  private struct Item: Sendable {
    let position: LinkPosition
    let message: LinkMessage
    let attempt: Int
    /// Whether the engine has lost messages before this one.
    var isAfterLoss = false
  }

  private let events: RedisEvents
  private nonisolated let names: TopicNames
  private nonisolated let group: String
  private nonisolated let retryAfter: Duration
  private nonisolated let id: UInt64
  private nonisolated let consumer: String
  private let bell = Bell()
  private var renewal: Task<Void, Never>?
  private var isConnected = false
  private var hasLeft = false
  /// The messages that were read and not delivered, the next one last.
  private var items: [Item] = []
  /// Messages that were removed before they were handled.
  private var lost: [LinkPosition] = []
  /// The message that is in progress.
  private var current: LinkPosition?
  /// The latest message that the group had not delivered before.
  private var newest: RedisEvents.Place
  /// The connection over which it was compared.
  private var generation: Int?
  private var ahead = ReadAhead(limit: 256)
  /// The times of the last reading, renewal and claim.
  private var readTime: Nanoseconds = 0
  private var renewTime: Nanoseconds = 0
  private var claimTime: Nanoseconds = 0

  init(_ events: RedisEvents, _ names: TopicNames, group: String, retryAfter: Duration) {
    self.events = events
    self.names = names
    self.group = group
    self.retryAfter = retryAfter
    id = events.makeReaderID()
    consumer = "\(events.node).\(id)"
    newest =
      events.recall(names.stream, group: group, at: nil)
      ?? RedisEvents.Place(stream: names.stream, group: group, position: .start)
    events.add(bell, for: names.stream, id)
  }

  deinit {
    renewal?.cancel()
    let (isActive, isOver, unused) = (isConnected, hasLeft, items)
    events.removeBell(for: names.stream, id)
    events.removeLeaving(id)
    events.note(held: 0, by: id)
    guard !isOver, isActive else { return }
    let leave = leaveCall(unused)
    Task.detached { [events] in
      _ = try? await events.run(TopicScripts.leave, leave.keys, leave.arguments)
    }
  }

  /// The time between two claims, and between two renewals.
  private nonisolated var pace: Duration { min(retryAfter / 4, .seconds(1)) }

  func next() async throws -> LinkDelivery? {
    current = nil
    events.note(held: items.count, by: id)
    defer { events.note(held: items.count + (current == nil ? 0 : 1), by: id) }
    do {
      return try await nextDelivery()
    } catch {
      // The next reader recognizes a server with old data.
      events.remember(newest)
      throw error
    }
  }

  private func nextDelivery() async throws -> LinkDelivery? {
    while !Task.isCancelled, !events.isClosed {
      if let position = lost.popLast() { return .gap(lost: position...position) }
      if !items.isEmpty {
        try await confirm()
        guard var item = items.popLast() else { continue }
        if item.isAfterLoss {
          item.isAfterLoss = false
          items.append(item)
          return .gap(lost: nil)
        }
        current = item.position
        return .message(item.message, at: item.position, attempt: item.attempt)
      }
      guard isConnected else { return try await connect() }
      if try await !hasGoneBack(), try await read() { continue }
      // The group was lost with its stream, or the stream with its latest part.
      isConnected = false
      newest = RedisEvents.Place(stream: names.stream, group: group, position: .start)
      return .gap(lost: nil)
    }
    await leave()
    return nil
  }

  private func connect() async throws -> LinkDelivery? {
    try await events.waitForConnection(bell)
    guard !Task.isCancelled, !events.isClosed else { return nil }
    // The server does not announce a stream to the connection that has created it, on which another reader may wait.
    defer { events.ring(names.stream) }
    let reply = try await events.run(TopicScripts.join, [names.stream], [.text(group)])
    guard let position = reply.text.flatMap({ LinkPosition($0) }) else {
      throw TierError.unexpectedReply
    }
    isConnected = true
    events.add({ [weak self] in await self?.leave() }, id)
    if renewal == nil {
      renewal = Task.detached { [weak self, pace] in
        while (try? await Task.sleep(for: pace)) != nil {
          guard await self?.renew() != nil else { return }
        }
      }
    }
    return .connected(at: position)
  }

  // MARK: - Reading

  /// Returns whether the server has lost messages that this node has received.
  private func hasGoneBack() async throws -> Bool {
    let current = events.generation
    guard current != generation else { return false }
    let isBehind = try await events.hasGoneBack(behind: newest)
    // Otherwise, the replies can be those of another server.
    if current == events.generation { generation = current }
    return isBehind
  }

  /// Reads new messages and those of other nodes, or waits for some.
  ///
  /// - Returns: Whether the group exists.
  private func read() async throws -> Bool {
    let start = Nanoseconds.now
    // The last ones took so long that other nodes could have handled some.
    if readTime > 0, start - readTime > 100_000_000 { ahead.shrink() }
    if start - claimTime >= Nanoseconds(pace) {
      try await claim()
      // There can be more of them.
      guard items.isEmpty, lost.isEmpty else { return true }
      claimTime = .now
    }
    let key = RedisCommand.Argument.text(names.stream)
    let count = ahead.count
    let replies = try await events.send([
      // Reading by a group counts as a change. This makes the server announce the next one.
      RedisCommand("XLEN", [key]),
      RedisCommand(
        "XREADGROUP",
        [
          "GROUP", .text(group), .text(consumer), "COUNT", .number(Int64(count)), "STREAMS", key,
          ">",
        ]
      ),
    ])
    let reply: RESPValue
    do {
      reply = try replies[1].get()
    } catch let error as RedisError where error.code == "NOGROUP" {
      return false
    }
    // A map from the stream to its entries, or nothing.
    let entries = (reply.elements?.last?.elements ?? []).compactMap { MessageFormat.Entry($0) }
    guard !entries.isEmpty else {
      readTime = 0
      await bell.wait(atMost: pace)
      return true
    }
    (readTime, renewTime) = (.now, .now)
    ahead.note(messages: entries.count, bytes: entries.reduce(0) { $0 + $1.size })
    items = entries.reversed().map { entry in
      Item(
        position: entry.position,
        message: entry.message,
        attempt: 1,
        isAfterLoss: entry.isAfterLoss
      )
    }
    // Replies of another server are compared with the message before them.
    if generation == events.generation, let latest = entries.last {
      newest.position = latest.position
      newest.id = latest.message.id
    }
    return true
  }

  /// Takes over messages that were not answered in time.
  private func claim() async throws {
    let reply = try await events.run(
      TopicScripts.claim,
      [names.stream],
      [.text(group), .text(consumer), milliseconds, 16]
    )
    guard let elements = reply.elements else { throw TierError.unexpectedReply }
    for element in elements.reversed() {
      guard let parts = element.elements, parts.count == 3,
        let position = parts[0].text.flatMap({ LinkPosition($0) })
      else { throw TierError.unexpectedReply }
      if let entry = MessageFormat.Entry(id: parts[0], fields: parts[1]) {
        let attempt = Int(clamping: parts[2].integer ?? 1)
        items.append(Item(position: position, message: entry.message, attempt: attempt))
      } else {
        lost.append(position)
      }
    }
    if !items.isEmpty { (readTime, renewTime) = (.now, .now) }
  }

  private nonisolated var milliseconds: RedisCommand.Argument {
    .number(max(1, Nanoseconds(retryAfter) / 1_000_000))
  }

  // MARK: - Renewal

  /// Drops messages that other nodes may have taken over, because this one stood still.
  private func confirm() async throws {
    guard .now - renewTime > Nanoseconds(retryAfter) / 2 else { return }
    try await renewAll()
  }

  private func renew() async {
    guard current != nil || !items.isEmpty else { return }
    // Without an answer the messages are taken over when their time is over.
    try? await renewAll()
  }

  private func renewAll() async throws {
    let start = Nanoseconds.now
    let positions = items.map(\.position) + (current.map { [$0] } ?? [])
    let reply = try await events.run(
      TopicScripts.renew,
      [names.stream],
      [.text(group), .text(consumer)] + positions.map { .text("\($0)") }
    )
    let kept = Set((reply.elements ?? []).compactMap { $0.text.flatMap { LinkPosition($0) } })
    let asked = Set(positions)
    items.removeAll { asked.contains($0.position) && !kept.contains($0.position) }
    renewTime = start
  }

  // MARK: - End

  private nonisolated func leaveCall(_ unused: [Item]) -> RedisScript.Call {
    RedisScript.Call(
      keys: [names.stream],
      arguments: [.text(group), .text(consumer), milliseconds]
        + unused.map { .text("\($0.position)") }
    )
  }

  /// Releases the messages for other nodes.
  private func leave() async {
    guard isConnected, !hasLeft else { return }
    hasLeft = true
    let call = leaveCall(items)
    items = []
    // Also for a task that is cancelled. Without an answer the messages are taken over when their time is over.
    _ = try? await Task { [events] in
      try await events.run(TopicScripts.leave, call.keys, call.arguments)
    }.value
  }
}
