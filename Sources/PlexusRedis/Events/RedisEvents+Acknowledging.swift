internal import Plexus
internal import PlexusSupport

// A node that waited for the confirmation of each event would handle one event in each round trip. The acknowledgement is
// therefore only given to the system before the next event is handled: it comes before anything that the process sends
// later, and reaches the server although the process ends. Of a process that has ended, the first event without an
// acknowledgement is the one that was in its handler.

extension RedisEvents {
  func acknowledge(
    _ position: LinkPosition,
    of topic: String,
    group: String,
    onFailure: @escaping @Sendable (any Error) -> Void
  ) async {
    let hand = hand(at: position, of: TopicNames(topic).stream, group)
    let call = acknowledgement(of: position, in: topic, group, hand)
    let deadline = Nanoseconds.now + Nanoseconds(timeout)
    guard let hand, let posted = post(call) else {
      let current = generation(of: call)
      return await finish(call, hand, onFailure) { [self] in
        try await acknowledge(call, until: deadline)
        guard current == generation(of: call) else { return }
        state.withLock { $0.acknowledgements.confirm(over: current) }
      }
    }
    guard posted.isWritten else {
      return await finish(call, hand, onFailure) { [self] in
        let result = await withCheckedContinuation { waiting in
          posted.onResult { waiting.resume(returning: $0) }
        }
        try await confirm(result, call, until: deadline)
      }
    }
    settle(hand)
    posted.onResult { [self] result in
      guard case .failure = result else { return state.withLock { $0.acknowledgements.end() } }
      track(call) { [self] in
        do {
          try await confirm(result, call, until: deadline)
        } catch {
          // The reader has not given it back, because it counted as acknowledged. Without an answer, it is taken over when
          // its time is over.
          try? await postpone(hand.value, of: hand.key)
          onFailure(RedisEngineError.publicError(error))
        }
      }
    }
  }

  /// Waits for an acknowledgement, and settles the message in progress.
  private func finish(
    _ call: RedisScript.Call,
    _ hand: (key: UInt64, value: Hand)?,
    _ onFailure: @Sendable (any Error) -> Void,
    by acknowledge: @escaping @Sendable () async throws -> Void
  ) async {
    do {
      try await track(call, acknowledge).value
      settle(hand)
    } catch {
      onFailure(RedisEngineError.publicError(error))
    }
  }

  /// Runs an acknowledgement to its end, also if the calling task is cancelled.
  @discardableResult
  func track(
    _ call: RedisScript.Call,
    _ acknowledge: @escaping @Sendable () async throws -> Void
  ) -> Task<Void, any Error> {
    let id = makeReaderID()
    return state.withLock { state in
      let task = Task.detached { [self] in
        defer { self.state.withLock { $0.acknowledging[id] = nil } }
        try await acknowledge()
      }
      state.acknowledging[id] = (call.keys[0], task)
      return task
    }
  }

  /// Waits for the acknowledgements of a stream that are waited for, or sent again.
  ///
  /// A message that is given back before would be handled again by another node.
  func endAcknowledging(of stream: String) async {
    let all = state.withLock { Array($0.acknowledging.values) }
    for (_, task) in all.filter({ $0.stream == stream }) { _ = await task.result }
  }

  /// Sends an acknowledgement that is not waited for, if it may be sent in this way.
  private func post(_ call: RedisScript.Call) -> ConnectionLoop.Posted? {
    let current = generation(of: call)
    let mayBeSent = state.withLock { $0.acknowledgements.begin(over: current) }
    guard mayBeSent else { return nil }
    if let route = try? route(for: call.keys[0]),
      let posted = TopicScripts.acknowledge.post(call, on: route)
    {
      return posted
    }
    state.withLock { $0.acknowledgements.end() }
    return nil
  }

  /// The number of the connection that a call is sent over.
  private func generation(of call: RedisScript.Call) -> Int {
    (try? route(for: call.keys[0]))?.generation ?? 0
  }

  /// Sends an acknowledgement again if its result is a failure, and time is left.
  private func confirm(
    _ result: Result<RESPValue, any Error>,
    _ call: RedisScript.Call,
    until deadline: Nanoseconds
  ) async throws {
    do {
      _ = try result.get()
      state.withLock { $0.acknowledgements.end() }
    } catch {
      state.withLock { $0.acknowledgements.fail() }
      defer { state.withLock { $0.acknowledgements.endFailed() } }
      guard .now < deadline else { throw error }
      try await acknowledge(call, until: deadline)
    }
  }

  /// Gives the message in progress of a reader back for its next attempt.
  func postpone(_ hand: Hand, of id: UInt64) async throws {
    _ = try await run(
      TopicScripts.postpone,
      [hand.stream],
      [
        .text(hand.group), .text(consumer(of: id)), .text("\(hand.position)"),
        .data(hand.identity),
      ]
    )
  }

  /// Sends an acknowledgement until the engine has confirmed it, or its time is over.
  func acknowledge(_ call: RedisScript.Call, until deadline: Nanoseconds? = nil) async throws {
    _ = try await retrying(until: deadline) {
      try await run(TopicScripts.acknowledge, call.keys, call.arguments)
    }
  }

  /// Returns the input of ``TopicScripts/acknowledge``.
  func acknowledgement(
    of position: LinkPosition,
    in topic: String,
    _ group: String,
    _ hand: (key: UInt64, value: Hand)?
  ) -> RedisScript.Call {
    RedisScript.Call(
      keys: [TopicNames(topic).stream],
      arguments: [
        .text(group.canonicalSpelling), .text("\(position)"), .data(hand?.value.identity ?? []),
      ]
    )
  }
}
