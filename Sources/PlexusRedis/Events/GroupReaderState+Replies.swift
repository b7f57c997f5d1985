internal import Plexus

extension GroupReaderState {
  mutating func receive(
    _ reply: ReaderReply,
    to command: ReaderCommand,
    sent: ReaderMoment,
    at moment: ReaderMoment
  ) throws {
    switch (command, reply) {
    case (.connect, .done): stage = .open
    case (.postpone, .done): finish()
    case (.reset, .value): reset()
    case (.join, .value(let value)): try join(value, over: sent.generation, at: moment)
    case (.survey, .survey(let latest, let id)):
      guard let newest else {
        stage = .beginning
        return
      }
      compare(newest.isLost(latest: latest, id: id), sent: sent, at: moment)
    case (.claim, .value(let value)): try claim(value, sent: sent, at: moment)
    case (.read, .results(let results)): try read(results, sent: sent, at: moment)
    case (.range, .entries(let entries, _)):
      guard case .read(let hole) = stage else { return }
      stage = .beginning
      let found = entries.first?.position ?? hole.first
      note(hole, endingAt: found >= hole.first ? hole.first : hole.end)
    case (.renew(let positions, _), .value(let value)):
      renew(positions, value, sent: sent)
      if case .compared = stage { stage = .renewed }
    case (.giveBack, .value): break
    default: throw TierError.unexpectedReply
    }
  }

  // MARK: - The group

  private mutating func join(
    _ reply: RESPValue,
    over current: Int,
    at moment: ReaderMoment
  ) throws {
    guard let parts = reply.elements, parts.count == 2, let position = LinkPosition(parts[0]) else {
      throw TierError.unexpectedReply
    }
    let id = MessageFormat.Entry(id: parts[0], fields: parts[1])?.message.id
    let start = Start(position: position, id: id, generation: current)
    guard newest == nil else {
      stage = .joined(start)
      return
    }
    connect(start, isBehind: nil, at: moment)
  }

  private mutating func connect(_ start: Start, isBehind: Bool?, at moment: ReaderMoment) {
    stage = .beginning
    // The replies can be those of different servers.
    guard start.generation == moment.generation else { return }
    generation = start.generation
    if isBehind != false {
      newest = RedisEvents.Place(.group(group), of: stream, position: start.position, id: start.id)
    }
    if isBehind == true { (lost, hasReportedLoss) = ([nil], true) }
    isConnected = true
    ready = [.connected(at: start.position)]
  }

  /// Continues after the comparison of the latest message.
  private mutating func compare(_ isBehind: Bool, sent: ReaderMoment, at moment: ReaderMoment) {
    switch stage {
    case .joined(let start):
      connect(start, isBehind: isBehind, at: moment)
    case .comparing:
      stage = .lost(isBehind: isBehind)
    default:
      // Otherwise, the replies can be those of another server.
      if sent.generation == moment.generation {
        generation = sent.generation
        // Only the loss that was reported over the connection before is the one that a publisher reports as well.
        if !isBehind { hasReportedLoss = false }
      }
      stage = isBehind ? .lost(isBehind: true) : .compared
    }
  }

  /// Begins again with what the server has: if the end of the stream is lost, the next publisher reports it as well.
  private mutating func reset() {
    if case .lost(let isBehind) = stage { hasReportedLoss = isBehind }
    (items, lost, newest) = ([], [], nil)
    (isConnected, claimTime, stage) = (false, nil, .beginning)
    ready = [.gap(lost: nil)]
  }

  // MARK: - Messages

  /// Takes messages that were not answered in time.
  private mutating func claim(
    _ reply: RESPValue,
    sent: ReaderMoment,
    at moment: ReaderMoment
  ) throws {
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
    stage = .beginning
    if !items.isEmpty {
      (readTime, renewTime) = (moment.time, sent.time)
      isWithoutMessage = false
    }
    // There can be more of them.
    guard items.isEmpty, lost.isEmpty, !hasLeft else { return }
    (claimTime, stage) = (moment.time, .claimed)
  }

  /// Takes the look at the group and the new messages.
  private mutating func read(
    _ results: [Result<RESPValue, any Error>],
    sent: ReaderMoment,
    at moment: ReaderMoment
  ) throws {
    guard results.count == 3 else { throw TierError.unexpectedReply }
    guard let entries = try Self.entries(in: results[2]) else {
      stage = .removed
      return
    }
    stage = .beginning
    guard let survey = try results[0].get().elements, survey.count == 2 else {
      throw TierError.unexpectedReply
    }
    let known = released
    // Without an answer, nothing is known to have been given back.
    if case .success(let value) = results[1] { released = value.bytes }
    if released != known { claimTime = nil }
    guard let first = entries.first, let latest = entries.last else {
      readTime = 0
      if claimTime != nil { pause = pace }
      return
    }
    (readTime, renewTime, isWithoutMessage) = (moment.time, sent.time, false)
    ahead.note(messages: entries.count, bytes: entries.reduce(0) { $0 + $1.size })
    items = entries.reversed().map { Item($0, attempt: 1) }
    // The group was set back, perhaps with a stream that has replaced the one before.
    if let newest, first.position <= newest.position { generation = nil }
    // Replies of another server are compared with the message before them.
    if generation == moment.generation {
      newest?.position = latest.position
      newest?.id = latest.message.id
    }
    // Of messages that are read together, all that are missing were removed.
    let holes = zip(entries, entries.dropFirst()).compactMap {
      $0.position.positions(before: $1.position)
    }
    note(
      holes.reversed(),
      after: LinkPosition(survey[0]),
      before: first.position,
      oldest: LinkPosition(survey[1])
    )
  }

  /// Returns the messages in a reply, which is a map from the stream to its entries, or nothing.
  ///
  /// - Returns: `nil` if there is no group.
  private static func entries(
    in result: Result<RESPValue, any Error>
  ) throws -> [MessageFormat.Entry]? {
    let reply: RESPValue
    do {
      reply = try result.get()
    } catch let error as RedisError where error.code == "NOGROUP" {
      return nil
    }
    if case .null = reply { return [] }
    guard let streams = reply.elements, streams.count == 2, let entries = streams[1].elements else {
      throw TierError.unexpectedReply
    }
    return try entries.map { try MessageFormat.Entry.read($0) }
  }

  /// Records messages that were removed before the group has read them.
  ///
  /// - Parameters:
  ///   - others: The positions that are missing between the messages that were read.
  ///   - last: The last position that the group had read when the reader looked at it.
  ///   - first: The first message that was read then.
  ///   - oldest: The first position from the last one on that the stream had at the look; `nil` if there was none.
  private mutating func note(
    _ others: [ClosedRange<LinkPosition>?],
    after last: LinkPosition?,
    before first: LinkPosition,
    oldest: LinkPosition?
  ) {
    guard let last, last != .start else {
      lost = others + lost
      return
    }
    let end = oldest ?? first
    let next = end > last ? end : LinkPosition(epoch: last.epoch, number: last.number &+ 1)
    let hole = Hole(last: last, first: first, next: next, end: end, others: others)
    // Other readers have read messages since the look, or they were removed. Positions of different epochs do not tell
    // whether there were any.
    if next < first, next.epoch == first.epoch {
      stage = .read(hole)
    } else {
      note(hole, endingAt: end)
    }
  }

  private mutating func note(_ hole: Hole, endingAt end: LinkPosition) {
    defer { lost = hole.others + lost }
    guard end > hole.last, !hole.last.isFollowed(by: end) else { return }
    lost = [hole.last.positions(before: end)]
    if end == hole.first, items.last?.position == hole.first {
      items[items.count - 1].isAfterLoss = false
    }
  }

  /// Drops the messages that are no longer pending for the reader.
  private mutating func renew(
    _ positions: [LinkPosition],
    _ reply: RESPValue,
    sent: ReaderMoment
  ) {
    let kept = Set((reply.elements ?? []).compactMap { LinkPosition($0) })
    let asked = Set(positions)
    items.removeAll { asked.contains($0.position) && !kept.contains($0.position) }
    renewTime = sent.time
  }
}
