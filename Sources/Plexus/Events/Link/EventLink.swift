/// A connection to an engine that carries events between processes, such as a Redis server.
///
/// A link transports bytes and positions. It neither encodes events nor calls handlers:
/// ``EventBus/connect(_:as:version:scope:over:_:)`` does both. `RedisEngine.events` of `PlexusRedis` is a link, and
/// `EventMemory` of `PlexusSharedTesting` is one for tests.
///
/// ## Writing a link
///
/// Each topic is a log of messages in one order. A link follows these rules, which `EventLinkConformance` of
/// `PlexusSharedTesting` checks:
///
/// - Positions of a topic increase. ``publish(_:to:)`` returns once the engine has the message.
/// - If it is unknown whether the engine has a message, the link sends it again only in a way that lets the engine
///   recognize it.
/// - The first delivery is ``LinkDelivery/connected(at:)``. All messages with a later position follow, in order.
/// - If the engine cannot be reached, the stream waits for it. If the connection breaks, the stream throws; the reader
///   then requests another one, which waits as well.
/// - If the engine has lost messages, also because it was restarted with old data, a ``LinkDelivery/gap(lost:)`` precedes
///   the next message. Positions of lost messages can be given again.
/// - When the link is closed, its streams end.
/// - Messages are read as the stream is consumed, so that a slow reader costs a bounded amount of memory.
public protocol EventLink: AnyObject, Sendable {
  /// The format of the events.
  var codec: any LinkCodec { get }

  /// Appends a message to a topic, and waits until the engine has it.
  ///
  /// - Parameters:
  ///   - message: The message.
  ///   - topic: The topic.
  /// - Returns: The position of the message.
  /// - Throws: An error if the engine does not have the message, or did not confirm it in time.
  func publish(_ message: LinkMessage, to topic: String) async throws -> LinkPosition

  /// Returns the messages of a topic; one task iterates over them.
  ///
  /// With ``LinkMode/oneNode(group:retryAfter:attempts:)``, the message last taken from the stream is in progress
  /// until the next one is requested, or until it is acknowledged or rejected. The link renews it meanwhile. A message
  /// that was neither acknowledged nor rejected is delivered again after `retryAfter`, with a higher attempt, to any
  /// node of the group. When the stream ends, other nodes receive it immediately.
  ///
  /// - Parameters:
  ///   - topic: The topic.
  ///   - mode: The mode, which determines the messages to deliver; not ``LinkMode/publishOnly``.
  /// - Returns: The deliveries.
  func deliveries(
    of topic: String,
    _ mode: LinkMode
  ) -> AsyncThrowingStream<LinkDelivery, any Error>

  /// Returns the messages of a topic in batches, if the link reads several messages together.
  ///
  /// A batch has the deliveries that are available at the same time, in order, and is not empty. Its events are decoded
  /// together, and wake their handlers once. Otherwise, the batches follow the rules of ``deliveries(of:_:)``. The
  /// default implementation returns `nil`.
  ///
  /// - Parameters:
  ///   - topic: The topic.
  ///   - mode: The mode: ``LinkMode/ephemeral`` or ``LinkMode/everyNode(from:)``.
  /// - Returns: The batches; `nil` if the deliveries of the mode are read one by one.
  func batches(
    of topic: String,
    _ mode: LinkMode
  ) -> AsyncThrowingStream<[LinkDelivery], any Error>?

  /// Marks a message as handled by a group.
  ///
  /// - Parameters:
  ///   - position: The position of the message.
  ///   - topic: The topic.
  ///   - group: The group.
  /// - Throws: An error if the engine did not confirm the call; the message can then be delivered again.
  func acknowledge(_ position: LinkPosition, of topic: String, group: String) async throws

  /// Marks a message as handled by a group, without waiting for the engine if the link can do that.
  ///
  /// The next message is handled when the call returns. A link may return before the engine has confirmed the call if
  /// the engine receives it although this process ends, and for a bounded number of messages at a time: if the
  /// connection breaks, the engine delivers them again. The default implementation waits for the confirmation.
  ///
  /// - Parameters:
  ///   - position: The position of the message.
  ///   - topic: The topic.
  ///   - group: The group.
  ///   - onFailure: Called with the error if the engine did not confirm the call, possibly after it has returned. The
  ///     message can then be delivered again.
  func acknowledge(
    _ position: LinkPosition,
    of topic: String,
    group: String,
    onFailure: @escaping @Sendable (any Error) -> Void
  ) async

  /// Moves a message to the dead letters of a group and acknowledges it, in one step.
  ///
  /// - Parameters:
  ///   - position: The position of the message.
  ///   - topic: The topic.
  ///   - group: The group.
  ///   - reason: The reason, for operators.
  /// - Throws: An error if the engine did not confirm the call; the message can then be delivered again.
  func reject(
    _ position: LinkPosition,
    of topic: String,
    group: String,
    because reason: String
  ) async throws
}

extension EventLink {
  /// Returns `nil`, since the deliveries are read one by one.
  ///
  /// - Parameters:
  ///   - topic: The topic.
  ///   - mode: The mode.
  /// - Returns: `nil`.
  public func batches(
    of topic: String,
    _ mode: LinkMode
  ) -> AsyncThrowingStream<[LinkDelivery], any Error>? {
    nil
  }

  /// Marks a message as handled by a group, and waits for the engine to confirm it.
  ///
  /// - Parameters:
  ///   - position: The position of the message.
  ///   - topic: The topic.
  ///   - group: The group.
  ///   - onFailure: Called with the error if the engine did not confirm the call.
  public func acknowledge(
    _ position: LinkPosition,
    of topic: String,
    group: String,
    onFailure: @escaping @Sendable (any Error) -> Void
  ) async {
    do {
      try await acknowledge(position, of: topic, group: group)
    } catch {
      onFailure(error)
    }
  }

  /// Returns the topic with the messages that a group could not handle.
  ///
  /// The names of topics and groups should not contain `.dead.`: the topic `a` with the group `b.dead.c` has the same dead
  /// letters as the topic `a.dead.b` with the group `c`.
  ///
  /// ```swift
  /// import Plexus
  ///
  /// func printDeadLetters(of link: any EventLink) async throws {
  ///   let topic = link.deadLetterTopic(of: "orders", group: "billing")
  ///   for try await delivery in link.deliveries(of: topic, .everyNode(from: .start)) {
  ///     if case .message(let message, _, _) = delivery { print(message.id, message.body.count) }
  ///   }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - topic: The topic.
  ///   - group: The group.
  /// - Returns: The name of the topic.
  public func deadLetterTopic(of topic: String, group: String) -> String {
    "\(topic).dead.\(group)"
  }
}
