internal import Plexus
internal import PlexusSupport

/// The reading of a topic: carries out the steps of a state, and registers the reader until it is released.
actor EventReader<State: EventReaderState> {
  /// A command that was sent in advance.
  private struct Following: Sendable {
    let command: ReaderCommand
    /// The connection over which it was sent, or an earlier one.
    let generation: Int
    let reply: Task<ReaderReply, any Error>
  }

  private nonisolated let port: ReaderPort
  private var state: State
  private var following: Following?
  private var renewal: Task<Void, Never>?
  /// The error that ends the reading behind the deliveries before it.
  private var failure: (any Error)?

  private init(_ port: ReaderPort, _ state: State) {
    self.port = port
    self.state = state
  }

  deinit {
    following?.reply.cancel()
    renewal?.cancel()
    port.close(isMember: state.isMember)
  }

  func next() async throws -> LinkDelivery? {
    try await fill(1) ? state.ready.popFirst() : nil
  }

  /// Returns the deliveries that are ready, once there are some.
  func nextBatch() async throws -> [LinkDelivery]? {
    guard try await fill(.max) else { return nil }
    defer { state.ready = [] }
    return Array(state.ready)
  }

  /// Waits until a delivery is ready.
  ///
  /// - Parameter count: The number of deliveries that are taken together at most.
  /// - Returns: Whether there is one; if not, the reading has ended.
  /// - Throws: An error that ends the reading.
  private func fill(_ count: Int) async throws -> Bool {
    if let failure = failure.take() { throw failure }
    do {
      while !Task.isCancelled {
        let moment = port.moment
        guard !moment.isClosed else { break }
        let step = try state.next(count, at: moment)
        if let load = state.takeLoad() { port.record(load) }
        switch step {
        case .deliver(let command):
          if let command { send(inAdvance: command, over: moment.generation) }
          return true
        case .send(let command):
          let reply = try await reply(to: command, over: moment.generation)
          try state.receive(reply, to: command, sent: moment, at: port.moment)
          beginRenewal()
        case .wait(let limit):
          await port.bell.wait(atMost: limit)
        }
      }
      await leave()
      return false
    } catch {
      // The next reader continues here, and recognizes a server with old data.
      if let place = state.place { port.events.remember(place) }
      state.fail()
      guard !state.ready.isEmpty else { throw error }
      failure = error
      return true
    }
  }

  // MARK: - Groups

  /// Renews the messages of a group from now on, and releases them when the link is closed.
  private func beginRenewal() {
    guard renewal == nil, state.isMember, let pace = state.pace else { return }
    port.whenClosing { [weak self] in await self?.leave() != nil }
    renewal = Task.detached { [weak self] in
      while (try? await Task.sleep(for: pace)) != nil {
        guard await self?.renew() != nil else { return }
      }
    }
  }

  private func renew() async {
    // Without an answer the messages are taken over when their time is over.
    if let command = state.giveBack(at: port.moment) {
      _ = try? await port.perform(command)
      if let load = state.takeLoad() { port.record(load) }
    }
    let moment = port.moment
    guard let command = state.renew(at: moment),
      let reply = try? await port.perform(command)
    else { return }
    try? state.receive(reply, to: command, sent: moment, at: port.moment)
  }

  /// Releases the messages of a group for other nodes.
  private func leave() async {
    if state.leave() { await port.leave() }
  }

  // MARK: - Commands

  /// Sends a command whose reply arrives while the deliveries before it are handled.
  private func send(inAdvance command: ReaderCommand, over generation: Int) {
    // It does not run on the actor of the reader, which delivers messages meanwhile.
    let task = Task.detached { [port] in try await port.perform(command) }
    following = Following(command: command, generation: generation, reply: task)
  }

  /// Returns the reply to a command, which may have been sent in advance.
  private func reply(
    to command: ReaderCommand,
    over generation: Int
  ) async throws -> ReaderReply {
    if let sent = following.take(), sent.command == command, sent.generation == generation {
      let known = await withTaskCancellationHandler {
        try? await sent.reply.value
      } onCancel: {
        sent.reply.cancel()
      }
      if case .entries(let entries, _) = known { return .entries(entries, isAhead: true) }
    }
    return try await port.perform(command)
  }
}

extension EventReader<StreamReaderState> {
  /// Creates a reader that gets every message after a position, or after the last one.
  init(_ events: RedisEvents, _ names: TopicNames, after position: LinkPosition?) {
    let place = position.map { position in
      events.recall(.everyNode, of: names.stream, at: position)
        ?? RedisEvents.Place(.everyNode, of: names.stream, position: position)
    }
    self.init(ReaderPort(events, names), StreamReaderState(of: names.stream, after: place))
  }
}

extension EventReader<ChannelReaderState> {
  /// Creates a reader that gets the messages that are published from its beginning on.
  init(_ events: RedisEvents, _ names: TopicNames) {
    let port = ReaderPort(events, names, buffering: 16 << 20)
    self.init(port, ChannelReaderState(of: names.stream))
  }
}

extension EventReader<GroupReaderState> {
  /// Creates a reader that shares the messages with the other ones of its group.
  ///
  /// - Parameters:
  ///   - events: The link.
  ///   - names: The names of the topic.
  ///   - group: The group.
  ///   - retryAfter: The time after which other nodes handle a message that is not renewed.
  ///   - pace: The time between two claims; a part of `retryAfter` by default.
  ///   - ahead: The number of messages that are read at once.
  init(
    _ events: RedisEvents,
    _ names: TopicNames,
    group: String,
    retryAfter: Duration,
    pace: Duration? = nil,
    ahead: ReadAhead = ReadAhead(limit: 256)
  ) {
    let group = ReaderPort.Group(name: group.canonicalSpelling, retryAfter: retryAfter)
    let port = ReaderPort(events, names, in: group)
    let state = GroupReaderState(
      of: names.stream,
      group: group.name,
      after: events.recall(.group(group.name), of: names.stream),
      retryAfter: retryAfter,
      pace: pace,
      ahead: ahead
    )
    self.init(port, state)
  }
}
