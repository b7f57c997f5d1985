internal import Plexus
internal import PlexusSupport

/// The side of a reader to its link: its registration, and the commands that it sends.
struct ReaderPort: Sendable {
  let events: RedisEvents
  let names: TopicNames
  let id: UInt64
  let bell = Bell()
  /// The messages of the channel; `nil` for a reader of the stream.
  let buffer: ChannelBuffer?
  private let group: Group?

  /// The group of a reader.
  struct Group: Sendable {
    let name: String
    let retryAfter: Duration
  }

  /// Registers a reader.
  ///
  /// - Parameters:
  ///   - events: The link.
  ///   - names: The names of the topic.
  ///   - bytes: The limit for messages of the channel; `nil` for a reader of the stream.
  ///   - group: The group of the reader.
  init(
    _ events: RedisEvents,
    _ names: TopicNames,
    buffering bytes: Int? = nil,
    in group: Group? = nil
  ) {
    self.events = events
    self.names = names
    self.group = group
    id = events.makeReaderID()
    buffer = bytes.map { [bell] in ChannelBuffer(limit: $0, bell) }
    events.add(bell, for: names.stream, id)
    if let group { events.add(bell, for: names.released(by: group.name), id) }
  }

  /// Ends the registration of a reader that is released.
  ///
  /// - Parameter isMember: Whether the server can have messages of the group for it.
  func close(isMember: Bool) {
    events.removeBell(for: names.stream, id)
    if buffer != nil { events.removeBuffer(for: names.channel, id) }
    guard let group else { return }
    events.removeBell(for: names.released(by: group.name), id)
    let hand = events.unsettledHand(of: id)
    record(ReaderLoad(count: 0, change: .ended))
    if isMember { events.leave(release(inHand: hand?.position)) }
    events.removeMember(id)
  }

  /// Releases the messages of the group for other nodes, also for a task that is cancelled.
  func leave() async {
    await events.leave(release(inHand: events.unsettledHand(of: id)?.position)).value
  }

  /// Calls a closure when the link is closed, which returns whether the reader still exists.
  func whenClosing(_ leave: @escaping @Sendable () async -> Bool) {
    events.add(leave, id)
  }

  /// Records the messages that the reader has received and not finished.
  func record(_ load: ReaderLoad) {
    events.record(load, of: names.stream, group?.name ?? "", by: id)
  }

  /// The connection and the time at a step of the reader.
  var moment: ReaderMoment {
    let generation = (try? events.route(for: names.stream))?.generation ?? 0
    return events.state.withLock { state in
      let hand = state.members[id]?.hand
      return ReaderMoment(
        generation: generation,
        isClosed: state.isClosed,
        time: .now,
        inHand: hand?.isSettled == false ? hand?.position : nil
      )
    }
  }

  /// Carries out a command.
  func perform(_ command: ReaderCommand) async throws -> ReaderReply {
    switch command {
    case .connect:
      try await events.waitForConnection(for: names.stream, bell)
      return .done
    case .survey(let position):
      let (latest, id) = try await events.survey(names.stream, at: position)
      return .survey(latest: latest, id: id)
    case .range(let start, let count):
      let entries = try await events.range(names.stream, from: start, count: count)
      return .entries(entries, isAhead: false)
    case .resume(let position):
      let arguments: [RedisCommand.Argument] = [
        .text("\(position)"), .number(Int64(events.largestEntry)),
      ]
      return .value(try await events.run(TopicScripts.resume, [names.stream], arguments))
    case .subscribe:
      if let buffer { events.add(buffer, for: names.channel, id) }
      let route = try events.route(for: names.channel)
      _ = try await route.passage().master.connection
        .send(RedisCommand("SUBSCRIBE", [.text(names.channel)]))
      return .done
    case .peek:
      return .elements(buffer?.first.map { [$0] } ?? [])
    case .take(let count):
      return .elements(try buffer?.take(atMost: count) ?? [])
    case .recall(let reading, let position):
      return .place(events.recall(reading, of: names.stream, at: position))
    default:
      guard let group else { throw TierError.unexpectedReply }
      return try await perform(command, in: group)
    }
  }
}

// MARK: - Groups

extension ReaderPort {
  /// Carries out a command of a reader of a group.
  private func perform(_ command: ReaderCommand, in group: Group) async throws -> ReaderReply {
    let stream = names.stream
    switch command {
    case .join:
      try await events.leaveOwed(names.released(by: group.name))
      // The server does not announce a stream to the connection that has created it, on which another reader may wait.
      defer { events.ring(stream) }
      return .value(try await events.run(TopicScripts.join, [stream], [.text(group.name)]))
    case .read(let count):
      let route = try events.route(for: stream)
      return .results(await route.send(commands(reading: count, of: group)))
    case .claim:
      let sizes: [RedisCommand.Argument] = [
        16, .number(Int64(events.largestEntry / 16)), .number(Int64(events.largestEntry)),
      ]
      let arguments = member + [milliseconds] + sizes
      return .value(try await events.run(TopicScripts.claim, [stream], arguments))
    case .renew(let positions, let isInTime):
      let arguments = member + [isInTime ? 1 : 0] + positions.map { .text("\($0)") }
      return .value(try await events.run(TopicScripts.renew, [stream], arguments))
    case .giveBack(let positions):
      let arguments = member + [milliseconds] + positions.map { .text("\($0)") }
      let keys = [stream, names.released(by: group.name)]
      return .value(try await events.run(TopicScripts.giveBack, keys, arguments))
    case .postpone:
      if let hand = events.unsettledHand(of: id) { try await events.postpone(hand, of: id) }
      return .done
    case .reset:
      let call = release(inHand: nil)
      return .value(try await events.run(TopicScripts.leave, call.keys, call.arguments))
    default:
      throw TierError.unexpectedReply
    }
  }

  /// The group, and the name of the reader in it.
  private var member: [RedisCommand.Argument] {
    [.text(group?.name ?? ""), .text(events.consumer(of: id))]
  }

  private var milliseconds: RedisCommand.Argument {
    // The server ignores an idle time from before 1970, and takes it for none.
    .number(min(max(1, Nanoseconds(group?.retryAfter ?? .zero) / 1_000_000), 1 << 40))
  }

  /// Returns the call that gives back all messages.
  ///
  /// - Parameter position: The message in progress that is neither acknowledged nor rejected.
  /// - Returns: The call.
  private func release(inHand position: LinkPosition?) -> RedisScript.Call {
    RedisScript.Call(
      keys: [names.stream, names.released(by: group?.name ?? "")],
      arguments: member + [milliseconds, .text(position.map { "\($0)" } ?? "")]
    )
  }

  /// Returns the commands that look at the group and at what was given back to it, and read the next messages.
  ///
  /// Each has one key: while a cluster moves the slot, a script with several keys has to wait until all of them are moved.
  /// A script that also reads would cost the server more than twice as much for each message. In a transaction, a server
  /// without memory refuses even to read, so that the group could acknowledge nothing.
  private func commands(reading count: Int, of group: Group) -> [RedisCommand] {
    let survey = RedisScript.Call(keys: [names.stream], arguments: [.text(group.name)])
    let released = RedisCommand("GET", [.text(names.released(by: group.name))])
    let reading: [RedisCommand.Argument] =
      ["GROUP"] + member
      + ["COUNT", .number(Int64(count)), "STREAMS", .text(names.stream), ">"]
    return [
      TopicScripts.surveyGroup.command(survey), released, RedisCommand("XREADGROUP", reading),
    ]
  }
}
