extension Messenger where Message: Codable {
  /// Connects the messenger with other processes, until the token is released.
  ///
  /// Messages that are sent by this messenger are published in order, and messages of other nodes are sent to its
  /// subscribers. A received message is not published again.
  ///
  /// ```swift
  /// import Plexus
  ///
  /// func chat(over link: any EventLink) -> (Messenger<String>, ObservationToken) {
  ///   let messenger = Messenger<String>()
  ///   return (messenger, messenger.connect(as: "chat", over: link, .everyNode()))
  /// }
  /// ```
  ///
  /// Sending does not wait for the link: up to 1,024 messages wait to be published. Further messages are dropped and
  /// reported, as are messages that the engine does not confirm, and the other problems of a ``LinkReport``. If you
  /// must know that the engine has a message, use an ``EventBus``.
  ///
  /// With ``LinkMode/oneNode(group:retryAfter:attempts:)``, a message is acknowledged once it is in the buffers of the
  /// subscribers. A message that the group delivers to the node that sent it counts as handled.
  ///
  /// The connection ends when the token is cancelled or released, and when the messenger finishes or is released. The
  /// connection does not keep the messenger alive.
  ///
  /// - Parameters:
  ///   - name: The name of the topic, and of the type in messages. All processes use the same name.
  ///   - version: The version of the format of the messages. Messages with another one are not handled.
  ///   - link: The link.
  ///   - mode: The mode, which determines the nodes that receive the messages, and the guarantees.
  ///   - bus: The bus that posts the reports, which is held weakly.
  /// - Returns: The token of the connection.
  /// - Precondition: The name is not empty. A group has a name, a positive time before the next attempt, and at least
  ///   one attempt.
  public nonisolated func connect(
    as name: String,
    version: Int = 1,
    over link: any EventLink,
    _ mode: LinkMode,
    reportingTo bus: EventBus = .shared
  ) -> ObservationToken {
    let author = Author()
    let report: @Sendable (LinkReport.Content) -> Void = { [weak core = bus.core] content in
      core?.report(content, topic: name)
    }
    let connection = LinkConnection(
      LinkConnection.Parts(
        link: link,
        topic: name,
        version: version,
        mode: mode,
        origin: LinkConnection.Parts.makeOrigin(),
        ownsAreHandled: true,
        clock: ContinuousClock().erased(),
        post: { [weak hub] (message: Message) in hub?.send(message, from: author.rawValue) },
        handle: { [weak hub] (message: Message) in
          guard let hub else { return .abandoned }
          hub.send(message, from: author.rawValue)
          return .handled
        },
        report: report
      )
    )
    let messages = subscription(ignoring: author, bufferingPolicy: .bufferingOldest(1_024))
    connection.start()
    let sending = Task.detached {
      await Self.publish(messages, over: connection.parts, report)
      connection.cancel()
    }
    return ObservationToken(onCancel: {
      sending.cancel()
      connection.cancel()
    })
  }

  private static func publish(
    _ messages: Subscription<Message>,
    over parts: LinkConnection.Parts,
    _ report: @Sendable (LinkReport.Content) -> Void
  ) async {
    var count = 0
    var droppedCount = 0
    for await message in messages {
      if messages.droppedCount > droppedCount {
        report(.dropped(count: messages.droppedCount - droppedCount))
        droppedCount = messages.droppedCount
      }
      count += 1
      do {
        let envelope = try parts.message(message, id: "\(parts.origin).\(count)")
        _ = try await parts.link.publish(envelope, to: parts.topic)
      } catch {
        guard !Task.isCancelled else { return }
        report(.unsent(error))
      }
    }
  }
}
