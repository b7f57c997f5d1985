internal import Plexus
internal import PlexusSupport

/// The reading of a topic by a node that shares its messages with the other nodes of a group.
///
/// The messages that were read are renewed until they are acknowledged, or the reader asks for the next one without an
/// acknowledgement. Messages that are not renewed are claimed by the readers of the group.
///
/// To the engine, the first message that it has for a reader is the one in progress, and later ones are read ahead. The
/// reader therefore delivers messages in order, and gives back one that is neither acknowledged nor rejected before it
/// delivers the next one.
actor GroupReader {
  private struct Item: Sendable {
    let position: LinkPosition
    /// The id of the message as the engine has it.
    let identity: [UInt8]
    let message: LinkMessage
    let attempt: Int
    /// Whether the engine has lost messages before this one.
    var isAfterLoss = false

    init(_ entry: MessageFormat.Entry, attempt: Int) {
      position = entry.position
      identity = entry.identity
      message = entry.message
      self.attempt = attempt
      isAfterLoss = entry.isAfterLoss && attempt == 1
    }
  }

  private let events: RedisEvents
  private nonisolated let names: TopicNames
  private nonisolated let group: String
  private nonisolated let retryAfter: Duration
  /// The time between two claims, and between two renewals.
  private nonisolated let pace: Duration
  private nonisolated let id: UInt64
  private nonisolated let consumer: String
  private let bell = Bell()
  private var renewal: Task<Void, Never>?
  private var isConnected = false
  private var hasLeft = false
  /// The messages that were read and not delivered, the next one last.
  private var items: [Item] = []
  /// Messages that were removed before they were handled, the next ones last.
  private var lost: [ClosedRange<LinkPosition>?] = []
  /// The message that is in progress.
  private var current: LinkPosition?
  /// The time at which it was delivered.
  private var deliveryTime: Nanoseconds = 0
  /// The latest message that the group had not delivered before.
  private var newest: RedisEvents.Place?
  /// The connection over which it was compared.
  private var generation: Int?
  /// Whether a loss was reported that the next publisher reports as well.
  private var hasReportedLoss = false
  /// Whether the group was lost, and has had no message since.
  private var isWithoutMessage = false
  private var ahead: ReadAhead
  /// The times of the last reading and renewal.
  private var readTime: Nanoseconds = 0
  private var renewTime: Nanoseconds = 0
  /// The time of the last claim; `nil` if there can be more messages to claim.
  private var claimTime: Nanoseconds?
  /// The content of the key that changes when a reader gives messages back.
  private var released: [UInt8]?

  /// Creates a reader, whose pace is a part of `retryAfter` by default.
  init(
    _ events: RedisEvents,
    _ names: TopicNames,
    group: String,
    retryAfter: Duration,
    pace: Duration? = nil,
    ahead: ReadAhead = ReadAhead(limit: 256)
  ) {
    self.events = events
    self.ahead = ahead
    self.names = names
    self.group = group.canonicalSpelling
    self.retryAfter = retryAfter
    self.pace = pace ?? min(max(retryAfter / 4, .milliseconds(1)), .seconds(1))
    id = events.makeReaderID()
    consumer = events.consumer(of: id)
    newest = events.recall(.group(group), of: names.stream)
    events.add(bell, for: names.stream, id)
    events.add(bell, for: names.released(by: group), id)
  }

  deinit {
    renewal?.cancel()
    events.removeBell(for: names.stream, id)
    events.removeBell(for: names.released(by: group), id)
    events.note(held: 0, by: id)
    let hand = events.unsettledHand(of: id)
    events.removeHand(id)
    if isConnected, !hasLeft { events.leave(leaveCall(inHand: hand?.position)) }
    events.removeLeaving(id)
  }

  func next() async throws -> LinkDelivery? {
    do {
      while !Task.isCancelled, !events.isClosed {
        try await finish()
        guard let delivery = try await nextDelivery() else { continue }
        events.note(held: items.count + (current == nil ? 0 : 1), by: id)
        return delivery
      }
      await leave()
      return nil
    } catch {
      // The next reader recognizes a server with old data.
      if let newest { events.remember(newest) }
      throw error
    }
  }

  /// Gives back a message that was neither acknowledged nor rejected.
  private func finish() async throws {
    guard current != nil else { return }
    if let hand = events.unsettledHand(of: id) { try await events.postpone(hand, of: id) }
    events.removeHand(id)
    current = nil
    events.note(held: items.count, by: id)
  }

  /// Returns the next delivery; `nil` if the reader has to look again.
  private func nextDelivery() async throws -> LinkDelivery? {
    guard isConnected else { return try await connect() }
    if try await hasGoneBack() { return try await lose(isBehind: true) }
    if let range = lost.popLast() { return .gap(lost: range) }
    if !items.isEmpty { try await confirm() }
    guard var item = items.popLast() else {
      if try await read() {
        if !items.isEmpty { isWithoutMessage = false }
        return nil
      }
      // Each further attempt to read has a pause.
      guard !isWithoutMessage else {
        throw RedisError("NOGROUP The group \(group) was removed again.".utf8)
      }
      isWithoutMessage = true
      // The group was lost, perhaps with its stream.
      var isBehind = false
      if let newest { isBehind = try await events.look(at: newest).isBehind }
      return try await lose(isBehind: isBehind)
    }
    if item.isAfterLoss {
      item.isAfterLoss = false
      items.append(item)
      defer { hasReportedLoss = false }
      return hasReportedLoss ? nil : .gap(lost: nil)
    }
    current = item.position
    deliveryTime = .now
    events.hand(item.position, identity: item.identity, of: names.stream, group, by: id)
    return .message(item.message, at: item.position, attempt: item.attempt)
  }

  private func connect() async throws -> LinkDelivery? {
    try await events.waitForConnection(bell)
    guard !Task.isCancelled, !events.isClosed else { return nil }
    let current = events.generation
    try await events.leaveOwed(names.released(by: group))
    // The server does not announce a stream to the connection that has created it, on which another reader may wait.
    defer { events.ring(names.stream) }
    let reply = try await events.run(TopicScripts.join, [names.stream], [.text(group)])
    guard let parts = reply.elements, parts.count == 2, let start = LinkPosition(parts[0]) else {
      throw TierError.unexpectedReply
    }
    var isBehind: Bool?
    if let newest { isBehind = try await events.look(at: newest).isBehind }
    // The replies can be those of different servers.
    guard current == events.generation else { return nil }
    generation = current
    if isBehind != false {
      let id = MessageFormat.Entry(id: parts[0], fields: parts[1])?.message.id
      newest = RedisEvents.Place(.group(group), of: names.stream, position: start, id: id)
    }
    if isBehind == true { (lost, hasReportedLoss) = ([nil], true) }
    isConnected = true
    events.add({ [weak self] in await self?.leave() != nil }, id)
    if renewal == nil {
      renewal = Task.detached { [weak self, pace] in
        while (try? await Task.sleep(for: pace)) != nil {
          guard await self?.renew() != nil else { return }
        }
      }
    }
    return .connected(at: start)
  }

  // MARK: - Losses

  /// Returns whether the server has lost messages that this node has received.
  private func hasGoneBack() async throws -> Bool {
    let current = events.generation
    guard current != generation, let newest else { return false }
    let known = try await events.look(at: newest)
    // Otherwise, the replies can be those of another server.
    if current == events.generation {
      generation = current
      // Only the loss that was reported over the connection before is the one that a publisher reports as well.
      if !known.isBehind { hasReportedLoss = false }
    }
    return known.isBehind
  }

  /// Begins again with what the server has.
  ///
  /// - Parameter isBehind: Whether it is the end of the stream that is lost: the next publisher reports it as well.
  /// - Returns: The report.
  /// - Throws: An error of the connection.
  private func lose(isBehind: Bool) async throws -> LinkDelivery {
    let call = leaveCall(inHand: nil)
    _ = try await events.run(TopicScripts.leave, call.keys, call.arguments)
    (items, lost, newest) = ([], [], nil)
    (isConnected, hasReportedLoss, claimTime) = (false, isBehind, nil)
    return .gap(lost: nil)
  }

  // MARK: - Reading

  /// Reads new messages and those of other nodes, or waits for some.
  ///
  /// - Returns: Whether the group exists.
  private func read() async throws -> Bool {
    // A command after the one by which the reader leaves would give it messages that no reader handles.
    guard !hasLeft else { return true }
    let start = Nanoseconds.now
    // The last ones took so long that other nodes could have handled some.
    if readTime > 0, start - readTime > 100_000_000 { ahead.shrink() }
    if claimTime.map({ start - $0 >= Nanoseconds(pace) }) ?? true {
      try await claim()
      // There can be more of them.
      guard items.isEmpty, lost.isEmpty, !hasLeft else { return true }
      claimTime = .now
    }
    let results = try await events.send(readCommands)
    let reply: RESPValue
    do {
      reply = try results[1].get()
    } catch let error as RedisError where error.code == "NOGROUP" {
      return false
    }
    let entries = try Self.entries(in: reply)
    guard let survey = try results[0].get().elements, survey.count == 3 else {
      throw TierError.unexpectedReply
    }
    let known = released
    released = survey[0].bytes
    if released != known { claimTime = nil }
    guard let first = entries.first, let latest = entries.last else {
      readTime = 0
      if claimTime != nil { await bell.wait(atMost: pace) }
      return true
    }
    (readTime, renewTime) = (.now, start)
    ahead.note(messages: entries.count, bytes: entries.reduce(0) { $0 + $1.size })
    items = entries.reversed().map { Item($0, attempt: 1) }
    // The group was set back, perhaps with a stream that has replaced the one before.
    if let newest, first.position <= newest.position { generation = nil }
    // Replies of another server are compared with the message before them.
    if generation == events.generation {
      newest?.position = latest.position
      newest?.id = latest.message.id
    }
    if let last = LinkPosition(survey[1]), last != .start {
      try await noteRemoved(after: last, before: first.position, oldest: LinkPosition(survey[2]))
    }
    // Of messages that are read together, all that are missing were removed.
    let holes = zip(entries, entries.dropFirst()).compactMap {
      $0.position.positions(before: $1.position)
    }
    lost = holes.reversed() + lost
    return true
  }

  /// The commands that look at the group and read the next messages.
  ///
  /// A script that also reads would cost the server more than twice as much for each message. In a transaction, a server
  /// without memory refuses even to read, so that the group could acknowledge nothing.
  private var readCommands: [RedisCommand] {
    let survey = RedisScript.Call(
      keys: [names.stream, names.released(by: group)],
      arguments: [.text(group)]
    )
    let reading: [RedisCommand.Argument] = [
      "GROUP", .text(group), .text(consumer), "COUNT", .number(Int64(ahead.count)),
      "STREAMS", .text(names.stream), ">",
    ]
    return [TopicScripts.surveyGroup.command(survey), RedisCommand("XREADGROUP", reading)]
  }

  /// Returns the messages in a reply, which is a map from the stream to its entries, or nothing.
  private static func entries(in reply: RESPValue) throws -> [MessageFormat.Entry] {
    if case .null = reply { return [] }
    guard let streams = reply.elements, streams.count == 2, let entries = streams[1].elements else {
      throw TierError.unexpectedReply
    }
    return try entries.map { try MessageFormat.Entry.read($0) }
  }

  /// Records messages that were removed before the group has read them.
  ///
  /// - Parameters:
  ///   - last: The last position that the group had read when the reader looked at it.
  ///   - first: The first message that was read then.
  ///   - oldest: The first position from the last one on that the stream had at the look; `nil` if there was none.
  /// - Throws: An error of the connection.
  private func noteRemoved(
    after last: LinkPosition,
    before first: LinkPosition,
    oldest: LinkPosition?
  ) async throws {
    var end = oldest ?? first
    // The message that the group would have read at the look.
    let next = end > last ? end : LinkPosition(epoch: last.epoch, number: last.number &+ 1)
    // Other readers have read messages since the look, or they were removed. Positions of different epochs do not tell
    // whether there were any.
    if next < first, next.epoch == first.epoch {
      let found = try await events.range(names.stream, from: next, count: 1).first?.position
      if (found ?? first) >= first { end = first }
    }
    guard end > last, !last.isFollowed(by: end) else { return }
    lost = [last.positions(before: end)]
    if end == first, items.last?.position == first {
      items[items.count - 1].isAfterLoss = false
    }
  }

  /// Takes over messages that were not answered in time.
  private func claim() async throws {
    let start = Nanoseconds.now
    let reply = try await events.run(
      TopicScripts.claim,
      [names.stream],
      [
        .text(group), .text(consumer), milliseconds, 16,
        .number(Int64(events.largestEntry / 16)), .number(Int64(events.largestEntry)),
      ]
    )
    guard let elements = reply.elements else { throw TierError.unexpectedReply }
    for element in elements.reversed() {
      guard let parts = element.elements, parts.count == 4, let attempt = parts[2].integer,
        let entry = MessageFormat.Entry(
          id: parts[0],
          fields: parts[1],
          isTooLarge: parts[3].integer == 1
        )
      else { throw TierError.unexpectedReply }
      if attempt > 0 {
        items.append(Item(entry, attempt: Int(clamping: attempt)))
      } else if let next = lost.last??.lowerBound, entry.position.isFollowed(by: next),
        let end = lost.last??.upperBound
      {
        lost[lost.count - 1] = entry.position...end
      } else {
        lost.append(entry.position...entry.position)
      }
    }
    if !items.isEmpty { (readTime, renewTime) = (.now, start) }
  }

  private nonisolated var milliseconds: RedisCommand.Argument {
    // The server ignores an idle time from before 1970, and takes it for none.
    .number(min(max(1, Nanoseconds(retryAfter) / 1_000_000), 1 << 40))
  }

  // MARK: - Renewal

  /// Drops messages that other nodes may have taken over, because this one stood still.
  private func confirm() async throws {
    guard .now - renewTime > Nanoseconds(retryAfter) / 2 else { return }
    try await renewAll()
  }

  private func renew() async {
    guard current != nil || !items.isEmpty else { return }
    if current != nil, .now - deliveryTime > Nanoseconds(retryAfter) { await giveBack() }
    // Without an answer the messages are taken over when their time is over.
    try? await renewAll()
  }

  /// Gives back the messages that were read ahead, because the one in progress takes long.
  ///
  /// Otherwise, a handler that hangs would keep them from the other nodes.
  private func giveBack() async {
    guard !items.isEmpty else { return }
    let positions = items.reversed().map { RedisCommand.Argument.text("\($0.position)") }
    items = []
    ahead.shrink()
    // Without an answer the messages are taken over when their time is over.
    _ = try? await events.run(
      TopicScripts.giveBack,
      [names.stream, names.released(by: group)],
      [.text(group), .text(consumer), milliseconds] + positions
    )
    events.note(held: items.count + (current == nil ? 0 : 1), by: id)
  }

  private func renewAll() async throws {
    let start = Nanoseconds.now
    // Otherwise, another node can have handled the messages that are no longer pending.
    let isInTime = start - renewTime < Nanoseconds(retryAfter) / 2
    let positions = items.map(\.position) + (current.map { [$0] } ?? [])
    let reply = try await events.run(
      TopicScripts.renew,
      [names.stream],
      [.text(group), .text(consumer), isInTime ? 1 : 0] + positions.map { .text("\($0)") }
    )
    let kept = Set((reply.elements ?? []).compactMap { LinkPosition($0) })
    let asked = Set(positions)
    items.removeAll { asked.contains($0.position) && !kept.contains($0.position) }
    renewTime = start
  }

  // MARK: - End

  /// Returns the call that gives back all messages.
  ///
  /// - Parameter position: The message in progress that is neither acknowledged nor rejected.
  /// - Returns: The call.
  private nonisolated func leaveCall(inHand position: LinkPosition?) -> RedisScript.Call {
    RedisScript.Call(
      keys: [names.stream, names.released(by: group)],
      arguments: [
        .text(group), .text(consumer), milliseconds, .text(position.map { "\($0)" } ?? ""),
      ]
    )
  }

  /// Releases the messages for other nodes.
  private func leave() async {
    guard isConnected, !hasLeft else { return }
    hasLeft = true
    items = []
    let call = leaveCall(inHand: events.unsettledHand(of: id)?.position)
    // Also for a task that is cancelled.
    await events.leave(call).value
  }
}
