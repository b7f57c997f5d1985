internal import Plexus
internal import PlexusSupport

extension RedisEvents {
  /// The task that waits for the result of a message.
  typealias Publisher = CheckedContinuation<LinkPosition, any Error>

  func publish(_ message: LinkMessage, to topic: String) async throws -> LinkPosition {
    let header = MessageFormat.header(of: message)
    let deadline = Nanoseconds.now + Nanoseconds(timeout)
    let (outgoing, batch) = outbox.withLock { outbox in
      let outgoing = EventOutboxState<Publisher>.Message(
        id: outbox.makeID(),
        header: header,
        body: message.body,
        deadline: deadline,
        priority: Task.currentPriority.rawValue
      )
      return (outgoing, outbox.begin(outgoing, to: topic))
    }
    return try await RedisEngineError.translating {
      guard let batch else { return try await wait(for: outgoing, to: topic) }
      return try await sendAlone(batch).get()
    }
  }

  /// Sends a batch of one message.
  ///
  /// It does not run on the actor of the publisher, which can be busy while others wait for the end of the batch.
  @concurrent
  private func sendAlone(
    _ batch: EventOutboxState<Publisher>.Batch
  ) async -> Result<LinkPosition, any Error> {
    let (results, confirmed) = await send(batch)
    // The messages of the next batch do not depend on this task, which can be cancelled.
    if let next = finish(batch, confirmed: confirmed) { sendInTask(next) }
    return results[0]
  }

  /// Waits for the result of a message that a later batch contains.
  private func wait(
    for message: EventOutboxState<Publisher>.Message,
    to topic: String
  ) async throws -> LinkPosition {
    let occupied = load.bytes
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { publisher in
        let admission = outbox.withLock { outbox in
          outbox.add(message, to: topic, by: publisher, beside: occupied)
        }
        switch admission {
        case .refused(let error):
          publisher.resume(throwing: error)
        case .sends(let batch):
          sendInTask(batch)
        case .waits:
          break
        }
        if Task.isCancelled { leave(message.id) }
      }
    } onCancel: {
      leave(message.id)
    }
  }

  /// Ends the wait of a publisher: its message is not sent, unless it was sent before.
  private func leave(_ id: UInt64) {
    outbox.withLock { $0.takePublisher(of: id) }?.resume(throwing: CancellationError())
  }

  /// Sends a batch, and its successors, in a task that no publisher can cancel.
  private func sendInTask(_ first: EventOutboxState<Publisher>.Batch) {
    let priority = first.priority
    Task.detached(priority: priority) { [self] in
      var next: EventOutboxState<Publisher>.Batch? = first
      while let batch = next {
        if batch.priority > priority { return sendInTask(batch) }
        let (results, confirmed) = await send(batch)
        next = finish(batch, confirmed: confirmed)
        let publishers = outbox.withLock { outbox in
          batch.messages.map { outbox.takePublisher(of: $0.id) }
        }
        for (publisher, result) in zip(publishers, results) { publisher?.resume(with: result) }
      }
    }
  }

  /// Ends a batch.
  ///
  /// - Returns: The next one of its topic.
  private func finish(
    _ batch: EventOutboxState<Publisher>.Batch,
    confirmed: PublishedState.Confirmed?
  ) -> EventOutboxState<Publisher>.Batch? {
    let (next, expired) = outbox.withLock { outbox in
      let (next, expired) = outbox.finish(batch, confirmed: confirmed, at: .now)
      return (next, expired.map { outbox.takePublisher(of: $0.id) })
    }
    for publisher in expired {
      publisher?.resume(throwing: RedisConnectionError.waitedTooLong(timeout))
    }
    return next
  }

  /// Sends a batch until the engine has answered it, or the time of its messages is over.
  ///
  /// - Returns: The result of each message, and the place of the batch if the engine has some of them.
  private func send(
    _ batch: EventOutboxState<Publisher>.Batch
  ) async -> ([Result<LinkPosition, any Error>], PublishedState.Confirmed?) {
    let names = TopicNames(batch.topic)
    // The server does not announce the own messages to their sender.
    defer { ring(names.stream) }
    let start = Nanoseconds.now
    let call = TopicScripts.publish(
      batch,
      names,
      node: node,
      limit: limit,
      trims: trimsWhenBehind,
      at: start
    )
    do {
      let reply = try await run(call, for: batch)
      let (results, first) = try TopicScripts.results(of: batch, in: reply)
      if !TopicScripts.isAnnounced(reply) {
        noteUnannounced(results.count { (try? $0.get()) != nil })
      }
      let confirmed = first.map {
        PublishedState.Confirmed(number: batch.number, position: $0, time: start)
      }
      return (results, confirmed)
    } catch {
      return (batch.messages.map { _ in .failure(error) }, nil)
    }
  }

  /// Runs the script for a batch until the engine has answered it, or the time of its messages is over.
  private func run(
    _ call: RedisScript.Call,
    for batch: EventOutboxState<Publisher>.Batch
  ) async throws -> RESPValue {
    let script = TopicScripts.publish
    let deadlines = batch.messages.map(\.deadline).sorted()
    let last = deadlines.last ?? .now
    let time = Nanoseconds(timeout)
    // The time limit of the command is that of new messages, and costs no timer.
    if let first = deadlines.first, first - .now > time / 16 * 15 {
      do {
        return try await runOnMaster(script, call)
      } catch {
        guard Self.isTemporary(error), .now < last else { throw error }
      }
    }
    return try await withThrowingTaskGroup { group in
      group.addTask { [self] in
        try await retrying(until: last) { try await runOnMaster(script, call) }
      }
      group.addTask { [self] in
        let error = RedisConnectionError.timedOut(command: "EVALSHA", after: timeout)
        for message in batch.messages.sorted(by: { $0.deadline < $1.deadline }) {
          try await Task.sleep(for: .nanoseconds(max(0, message.deadline - .now)))
          // The last ones end together with their batch.
          guard message.deadline < last else { break }
          outbox.withLock { $0.takePublisher(of: message.id) }?.resume(throwing: error)
        }
        throw error
      }
      defer { group.cancelAll() }
      guard let reply = try await group.next() else { throw CancellationError() }
      return reply
    }
  }
}

extension RedisEvents {
  /// Runs the script for a batch, which has the errors of a server that was demoted within its reply.
  private func runOnMaster(
    _ script: RedisScript,
    _ call: RedisScript.Call
  ) async throws -> RESPValue {
    let route = try route(for: call.keys[0])
    let reply = try await script.run(on: route, keys: call.keys, call.arguments)
    let errors = (reply.elements ?? []).dropFirst().compactMap { element -> RedisError? in
      // The announcement is not needed.
      guard let parts = element.elements, parts.count == 2, parts[0].integer != 0,
        case .error(let error) = parts[1]
      else { return nil }
      return error
    }
    route.master?.connection.note(errors, of: script.purpose)
    if let error = errors.first(where: \.endsConnection) { throw error }
    return reply
  }
}

// MARK: - The script

extension TopicScripts {
  /// Returns the input of ``publish``.
  static func publish<Publisher>(
    _ batch: EventOutboxState<Publisher>.Batch,
    _ names: TopicNames,
    node: String,
    limit: Int,
    trims: Bool = false,
    at start: Nanoseconds
  ) -> RedisScript.Call {
    let latest = batch.latest
    // The engine forgets numbers after a while, and need not have older ones.
    let isRecent = latest.map { start - $0.time < TopicNames.memory * 9 / 10 } ?? false
    var arguments: [RedisCommand.Argument] = [
      .text("\(batch.number)"), .text("\(batch.number % TopicNames.remembered)"),
      .text(latest.map { "\($0.position.epoch)" } ?? ""), .number(Int64(limit)),
      .text(names.channel),
      .text(latest.map { isRecent ? "\($0.number % TopicNames.remembered)" : "" } ?? ""),
      .text(latest.map { "\($0.number)" } ?? ""), .text(latest.map { "\($0.position)" } ?? ""),
      .number(TopicNames.memory / 1_000_000), trims ? 1 : 0,
    ]
    for message in batch.messages { arguments += [.text(message.header), .data(message.body)] }
    return RedisScript.Call(
      keys: [names.stream, names.sent(by: node)],
      arguments: arguments
    )
  }

  /// Reads the reply to ``publish``.
  ///
  /// - Returns: The result of each message, and the position of the first one that was appended.
  static func results<Publisher>(
    of batch: EventOutboxState<Publisher>.Batch,
    in reply: RESPValue
  ) throws -> ([Result<LinkPosition, any Error>], first: LinkPosition?) {
    guard let elements = reply.elements, let head = elements.first else {
      throw TierError.unexpectedReply
    }
    var refused: [Int: RedisError] = [:]
    for element in elements.dropFirst() {
      guard let parts = element.elements, parts.count == 2, let number = parts[0].integer,
        case .error(let error) = parts[1]
      else { throw TierError.unexpectedReply }
      if number > 0 { refused[Int(clamping: number) - 1] = error }
    }
    let first = LinkPosition(head)
    guard first != nil || batch.messages.indices.allSatisfy({ refused[$0] != nil }) else {
      throw TierError.unexpectedReply
    }
    var next = first
    let results = batch.messages.indices.map { index -> Result<LinkPosition, any Error> in
      guard refused[index] == nil, let position = next else {
        return .failure(refused[index] ?? RedisError([]))
      }
      // The script appends them one after another, and nothing in between.
      next = LinkPosition(epoch: position.epoch, number: position.number &+ 1)
      return .success(position)
    }
    return (results, first)
  }

  /// Returns whether the messages in a reply to ``publish`` were announced on the channel.
  static func isAnnounced(_ reply: RESPValue) -> Bool {
    !(reply.elements ?? []).contains { $0.elements?.first?.integer == 0 }
  }
}
