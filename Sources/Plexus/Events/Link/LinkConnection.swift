/// A connection between a bus or messenger and a topic: it receives events, and knows their origin when others are
/// published.
///
/// One task reads the deliveries and handles them one after another. It holds neither the bus nor the messenger.
final class LinkConnection: Sendable {
  /// The result of handing a message to the handlers.
  enum Handling: Sendable {
    case handled
    /// The message cannot be read, now or later.
    case unreadable(LinkRejection)
    /// The handlers have failed, or there are none.
    case failed(LinkRejection)
    /// The connection has ended meanwhile.
    case abandoned
  }

  /// The parts of a connection.
  struct Parts: Sendable {
    let link: any EventLink
    let topic: String
    let version: Int
    let mode: LinkMode
    let origin: String
    /// Whether messages of this node that its group hands back to it count as handled.
    var ownsAreHandled = false
    let clock: any ErasedClock
    /// Decodes a message, and returns the closure that hands it to the handlers.
    let decode: @Sendable (LinkMessage) throws(LinkRejection) -> @Sendable () -> Void
    /// Hands a message to the handlers, and waits for them.
    let handle: @Sendable (LinkMessage) async -> Handling
    let report: @Sendable (LinkReport.Content) -> Void
  }

  let parts: Parts
  private let task = TaskSlot()

  init(_ parts: Parts) {
    if case .oneNode(let group, let retryAfter, let attempts) = parts.mode {
      precondition(
        !group.isEmpty && retryAfter > .zero && attempts > 0,
        "A group needs a name, a positive time before the next attempt, and at least one attempt"
      )
    }
    precondition(!parts.topic.isEmpty, "A connection needs a name that the processes share")
    self.parts = parts
  }

  /// Begins to receive.
  func start() {
    guard parts.mode != .publishOnly else { return }
    task.start { Task.detached { [parts] in await Self.run(parts) } }
  }

  /// Ends the connection: no message is handled afterwards, and unacknowledged ones go to other nodes.
  func cancel() {
    task.cancel()
  }

  // MARK: - Receiving

  /// Receives messages until the link ends, or the task is cancelled.
  static func run(_ parts: Parts) async {
    var state = LinkConnectionState(
      mode: parts.mode,
      type: parts.topic,
      version: parts.version,
      origin: parts.origin,
      ownsAreHandled: parts.ownsAreHandled
    )
    while !Task.isCancelled {
      let start = parts.clock.now()
      do {
        try await parts.read(&state)
        guard !Task.isCancelled else { return }
        parts.report(.ended)
        return
      } catch {
        guard !Task.isCancelled else { return }
        parts.report(.interrupted(error))
      }
      let pause = state.interrupt(after: parts.clock.now() - start)
      if pause > .zero { _ = await parts.clock.hasSlept(until: parts.clock.now() + pause) }
    }
  }
}

extension LinkConnection.Parts {
  /// The number of events of a batch that are decoded before the handlers get them.
  ///
  /// Handlers that wait are then woken once for all of them: waking takes longer than decoding an event.
  private static let decodedTogether = 128

  /// Receives the messages of a stream until it ends, or the task is cancelled.
  fileprivate func read(_ state: inout LinkConnectionState) async throws {
    if let group = mode.group {
      for try await delivery in link.deliveries(of: topic, state.resumption) {
        guard !Task.isCancelled else { return }
        await receive(delivery, for: group, &state)
      }
    } else if let batches = link.batches(of: topic, state.resumption) {
      for try await batch in batches {
        guard !Task.isCancelled else { return }
        receive(batch, &state)
      }
    } else {
      for try await delivery in link.deliveries(of: topic, state.resumption) {
        guard !Task.isCancelled else { return }
        receive(CollectionOfOne(delivery), &state)
      }
    }
  }

  /// Reports the beginning of a stream, or a loss.
  private func note(_ delivery: LinkDelivery, _ state: inout LinkConnectionState) {
    switch delivery {
    case .connected(let position):
      if let gap = state.connect(at: position) { report(.gap(lost: gap.lost)) }
      report(.connected(at: position))
    case .gap(let lost):
      if state.lose(lost) { report(.gap(lost: lost)) }
    case .message:
      break
    }
  }

  // MARK: - Every node

  /// Hands messages to the handlers, which are not waited for.
  private func receive(_ batch: some Collection<LinkDelivery>, _ state: inout LinkConnectionState) {
    var decoded: [@Sendable () -> Void] = []
    for delivery in batch {
      guard case .message(let message, let position, let attempt) = delivery else {
        hand(over: &decoded)
        note(delivery, &state)
        continue
      }
      switch state.receive(message, at: position, attempt: attempt) {
      case .ignore, .acknowledge, .reject:
        break
      case .skip(let rejection):
        hand(over: &decoded)
        report(.skipped(message, at: position, rejection))
      case .handle:
        do throws(LinkRejection) {
          decoded.append(try decode(message))
          if decoded.count == Self.decodedTogether { hand(over: &decoded) }
        } catch {
          hand(over: &decoded)
          report(.skipped(message, at: position, error))
        }
      }
    }
    hand(over: &decoded)
  }

  /// Hands decoded messages to the handlers, unless the connection has ended.
  private func hand(over decoded: inout [@Sendable () -> Void]) {
    for hand in decoded where !Task.isCancelled { hand() }
    decoded.removeAll(keepingCapacity: true)
  }

  // MARK: - One node of a group

  private func receive(
    _ delivery: LinkDelivery,
    for group: String,
    _ state: inout LinkConnectionState
  ) async {
    guard case .message(let message, let position, let attempt) = delivery else {
      return note(delivery, &state)
    }
    switch state.receive(message, at: position, attempt: attempt) {
    case .ignore, .skip:
      break
    case .acknowledge:
      await acknowledge(message, at: position, for: group)
    case .reject(let rejection):
      await reject(message, at: position, attempt: attempt, for: group, rejection)
    case .handle:
      let handling = await handle(message)
      // Also if the handlers were faster than the cancellation: the message goes to another node.
      guard !Task.isCancelled else { return }
      switch handling {
      case .abandoned:
        break
      case .handled:
        state.settle(message)
        await acknowledge(message, at: position, for: group)
      case .unreadable(let rejection):
        await reject(message, at: position, attempt: attempt, for: group, rejection)
      case .failed(let rejection):
        if state.isRetried(attempt: attempt) {
          report(.postponed(message, at: position, attempt: attempt, rejection))
        } else {
          await reject(message, at: position, attempt: attempt, for: group, rejection)
        }
      }
    }
  }

  private func acknowledge(
    _ message: LinkMessage,
    at position: LinkPosition,
    for group: String
  ) async {
    await link.acknowledge(position, of: topic, group: group) { [report] error in
      report(.unconfirmed(message, at: position, error))
    }
  }

  private func reject(
    _ message: LinkMessage,
    at position: LinkPosition,
    attempt: Int,
    for group: String,
    _ rejection: LinkRejection
  ) async {
    do {
      let reason = rejection.description
      try await link.reject(position, of: topic, group: group, because: reason)
      report(.rejected(message, at: position, attempt: attempt, rejection))
    } catch {
      report(.unconfirmed(message, at: position, error))
    }
  }
}

// MARK: - Content

extension LinkConnection.Parts {
  /// Creates the parts of a connection whose messages have a type.
  ///
  /// - Parameters:
  ///   - link: The link.
  ///   - topic: The topic, which is also the name of the type in messages.
  ///   - version: The version of the format of the type.
  ///   - mode: The messages to receive.
  ///   - origin: The name of this node in messages.
  ///   - ownsAreHandled: Whether messages of this node that its group hands back to it count as handled.
  ///   - clock: The clock for the pauses between attempts to connect.
  ///   - post: Hands the content of a message to the handlers.
  ///   - handle: The same, and waits for them.
  ///   - report: Reports what happens to the connection and its messages.
  init<Content: Decodable & Sendable>(
    link: any EventLink,
    topic: String,
    version: Int,
    mode: LinkMode,
    origin: String,
    ownsAreHandled: Bool = false,
    clock: any ErasedClock,
    post: @escaping @Sendable (Content) -> Void,
    handle: @escaping @Sendable (Content) async -> LinkConnection.Handling,
    report: @escaping @Sendable (LinkReport.Content) -> Void
  ) {
    let decode: @Sendable (LinkMessage) throws(LinkRejection) -> Content = {
      [codec = link.codec] message throws(LinkRejection) in
      do {
        return try codec.decode(Content.self, from: message.body)
      } catch {
        throw .undecodable(reason: "\(error)")
      }
    }
    self.init(
      link: link,
      topic: topic,
      version: version,
      mode: mode,
      origin: origin,
      ownsAreHandled: ownsAreHandled,
      clock: clock,
      decode: { message throws(LinkRejection) in
        let content = try decode(message)
        return { post(content) }
      },
      handle: { message in
        do throws(LinkRejection) {
          let content = try decode(message)
          return Task.isCancelled ? .abandoned : await handle(content)
        } catch {
          return .unreadable(error)
        }
      },
      report: report
    )
  }

  /// Returns the message with a content.
  ///
  /// - Parameters:
  ///   - content: The content.
  ///   - id: The id of the message.
  /// - Returns: The message.
  /// - Throws: An error of the encoder.
  func message(_ content: some Encodable, id: String) throws -> LinkMessage {
    LinkMessage(
      id: id,
      type: topic,
      version: version,
      origin: origin,
      body: try link.codec.encode(content)
    )
  }

  /// Returns a name for a node, which no other node has.
  static func makeOrigin() -> String {
    String(UInt64.random(in: .min ... .max), radix: 36)
  }
}
