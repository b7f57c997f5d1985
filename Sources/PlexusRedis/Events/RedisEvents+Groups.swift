internal import Plexus
internal import PlexusSupport

// MARK: - Messages of groups

extension RedisEvents {
  func acknowledge(
    _ position: LinkPosition,
    of topic: String,
    group: String
  ) async throws {
    let hand = hand(at: position, of: TopicNames(topic).stream, group)
    let call = acknowledgement(of: position, in: topic, group, hand)
    try await RedisEngineError.translating {
      try await track(call) { [self] in try await acknowledge(call) }.value
    }
    settle(hand)
  }

  func reject(
    _ position: LinkPosition,
    of topic: String,
    group: String,
    because reason: String
  ) async throws {
    let stream = TopicNames(topic).stream
    let letters = TopicNames(deadLetterTopic(of: topic, group: group))
    let hand = hand(at: position, of: stream, group)
    defer { ring(letters.stream) }
    let arguments: [RedisCommand.Argument] = [
      .text(group.canonicalSpelling), .text("\(position)"), .data(hand?.value.identity ?? []),
      .text(reason),
      .number(Int64(limit)), .text(letters.channel),
      .text(hand.map { consumer(of: $0.key) } ?? ""),
    ]
    _ = try await RedisEngineError.translating {
      try await retrying {
        try await run(TopicScripts.reject, [stream, letters.stream], arguments)
      }
    }
    settle(hand)
  }

  /// Returns a message in progress and its reader.
  func hand(
    at position: LinkPosition,
    of stream: String,
    _ group: String
  ) -> (key: UInt64, value: Hand)? {
    state.withLock { state in
      for (id, member) in state.members {
        guard let hand = member.hand, hand.position == position, hand.stream == stream,
          hand.group == group
        else { continue }
        return (id, hand)
      }
      return nil
    }
  }

  func settle(_ hand: (key: UInt64, value: Hand)?) {
    guard let (id, settled) = hand else { return }
    state.withLock { state in
      guard state.members[id]?.hand?.position == settled.position else { return }
      state.members[id]?.hand?.isSettled = true
    }
  }

  /// Returns the message in progress of a reader, unless it was acknowledged or rejected.
  func unsettledHand(of id: UInt64) -> Hand? {
    state.withLock { $0.members[id]?.hand }.flatMap { $0.isSettled ? nil : $0 }
  }

  /// Gives back the messages of a reader, also if its task is cancelled.
  ///
  /// If the engine does not confirm it, the next reader of the group tries it again. Without one, the messages are taken
  /// over when their time is over.
  @discardableResult
  func leave(_ call: RedisScript.Call) -> Task<Void, Never> {
    let id = makeReaderID()
    return state.withLock { state in
      let task = Task.detached { [self] in
        try? await give(back: call)
        self.state.withLock { $0.departures[id] = nil }
      }
      state.departures[id] = task
      return task
    }
  }

  /// Gives back the messages of earlier readers of a group for which it has failed.
  func leaveOwed(_ key: String) async throws {
    while let call = state.withLock({ $0.owed[key]?.popLast() }) { try await give(back: call) }
    state.withLock { state in
      if state.owed[key]?.isEmpty == true { state.owed[key] = nil }
    }
  }

  private func give(back call: RedisScript.Call) async throws {
    await endAcknowledging(of: call.keys[0])
    do {
      _ = try await run(TopicScripts.leave, call.keys, call.arguments)
    } catch {
      state.withLock { $0.owed[call.keys[1], default: []].append(call) }
      throw error
    }
    // The server does not announce the change to its author.
    ring(call.keys[1])
  }
}
