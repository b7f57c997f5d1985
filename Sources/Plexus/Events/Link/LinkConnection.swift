/// The receiving side of a connection between a bus or messenger and a topic.
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
    let handle: @Sendable (LinkMessage) async -> Handling
    let report: @Sendable (LinkReport.Content) -> Void
  }

  private struct State: Sendable {
    var task: Task<Void, Never>?
    var isCancelled = false
  }

  let parts: Parts
  private let state = Locked(State())

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
    let task = Task.detached { [parts] in await Self.run(parts) }
    let isCancelled = state.withLock { state in
      if !state.isCancelled { state.task = task }
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
  }

  /// Ends the connection: no message is handled afterwards, and unacknowledged ones go to other nodes.
  func cancel() {
    let task = state.withLock { state in
      state.isCancelled = true
      return state.task.take()
    }
    task?.cancel()
  }

  // MARK: - Receiving

  private static func run(_ parts: Parts) async {
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
        for try await delivery in parts.link.deliveries(of: parts.topic, state.resumption) {
          guard !Task.isCancelled else { return }
          await parts.receive(delivery, &state)
        }
        if !Task.isCancelled { parts.report(.ended) }
        return
      } catch {
        guard !Task.isCancelled else { return }
        parts.report(.interrupted(error))
      }
      let pause = state.interrupt(after: parts.clock.now() - start)
      if pause > .zero { try? await parts.clock.sleep(until: parts.clock.now() + pause) }
    }
  }
}

extension LinkConnection.Parts {
  fileprivate func receive(_ delivery: LinkDelivery, _ state: inout LinkConnectionState) async {
    switch delivery {
    case .connected(let position):
      if let gap = state.connect(at: position) { report(.gap(lost: gap.lost)) }
      report(.connected(at: position))
    case .gap(let lost):
      if state.lose(lost) { report(.gap(lost: lost)) }
    case .message(let message, let position, let attempt):
      await receive(message, at: position, attempt: attempt, &state)
    }
  }

  private func receive(
    _ message: LinkMessage,
    at position: LinkPosition,
    attempt: Int,
    _ state: inout LinkConnectionState
  ) async {
    switch state.receive(message, at: position, attempt: attempt) {
    case .ignore:
      break
    case .acknowledge:
      await acknowledge(message, at: position)
    case .skip(let rejection):
      report(.skipped(message, at: position, rejection))
    case .reject(let rejection):
      await reject(message, at: position, attempt: attempt, rejection)
    case .handle:
      switch await handle(message) {
      case .abandoned:
        break
      case .handled:
        guard mode.group != nil else { break }
        state.settle(message)
        await acknowledge(message, at: position)
      case .unreadable(let rejection):
        if mode.group == nil {
          report(.skipped(message, at: position, rejection))
        } else {
          await reject(message, at: position, attempt: attempt, rejection)
        }
      case .failed(let rejection):
        if state.isRetried(attempt: attempt) {
          report(.postponed(message, at: position, attempt: attempt, rejection))
        } else {
          await reject(message, at: position, attempt: attempt, rejection)
        }
      }
    }
  }

  private func acknowledge(_ message: LinkMessage, at position: LinkPosition) async {
    guard let group = mode.group else { return }
    await link.acknowledge(position, of: topic, group: group) { [report] error in
      report(.unconfirmed(message, at: position, error))
    }
  }

  private func reject(
    _ message: LinkMessage,
    at position: LinkPosition,
    attempt: Int,
    _ rejection: LinkRejection
  ) async {
    guard let group = mode.group else { return }
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
  ///   - receive: Hands the content of a message to the handlers.
  ///   - report: Reports what happens to the connection and its messages.
  init<Content: Decodable & Sendable>(
    link: any EventLink,
    topic: String,
    version: Int,
    mode: LinkMode,
    origin: String,
    ownsAreHandled: Bool = false,
    clock: any ErasedClock,
    receive: @escaping @Sendable (Content) async -> LinkConnection.Handling,
    report: @escaping @Sendable (LinkReport.Content) -> Void
  ) {
    self.init(
      link: link,
      topic: topic,
      version: version,
      mode: mode,
      origin: origin,
      ownsAreHandled: ownsAreHandled,
      clock: clock,
      handle: { [codec = link.codec] message in
        let content: Content
        do {
          content = try codec.decode(Content.self, from: message.body)
        } catch {
          return .unreadable(.undecodable(reason: "\(error)"))
        }
        return Task.isCancelled ? .abandoned : await receive(content)
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
