/// The nodes that receive the messages of a topic, and the guarantees of their delivery.
///
/// | Mode | Receivers | A disconnected node | Guarantee |
/// |---|---|---|---|
/// | ``ephemeral`` | every connected node | misses messages, with a report | at most once |
/// | ``everyNode(from:)`` | every node | receives them after the reconnection | each message once, or a reported gap |
/// | ``oneNode(group:retryAfter:attempts:)`` | one node of each group | another node takes over | at least once, then a dead letter |
/// | ``publishOnly`` | | | |
public enum LinkMode: Hashable, Sendable {
  /// Every node receives the messages that are published while it is connected.
  ///
  /// Use it, for example, for presence or typing indicators.
  case ephemeral
  /// Every node receives all messages, even the ones published while its connection was broken.
  ///
  /// A node begins with the messages after a position, or with new ones. Messages that the engine no longer has are
  /// reported as ``LinkReport/Content/gap(lost:)``. A restarted process begins in the same way. To continue where it
  /// stopped, give each node a group of its own.
  case everyNode(from: LinkPosition? = nil)
  /// One node of a group handles each message.
  ///
  /// A message is acknowledged once all handlers on the node have succeeded, or one handler if the event is persistent.
  /// If one throws, if there are none, or if the node dies, a node of the group receives the message again after `retryAfter`, up to `attempts` times in total.
  /// Afterwards, it is moved to the dead letters of the group: ``EventLink/deadLetterTopic(of:group:)``.
  ///
  /// A group begins with the oldest message that the engine has. Use a separate group for each purpose, such as
  /// `billing`.
  case oneNode(group: String, retryAfter: Duration = .seconds(30), attempts: Int = 5)
  /// The node receives nothing, and only publishes.
  case publishOnly
}

extension LinkMode {
  /// Whether every node receives the messages.
  var reachesEveryNode: Bool {
    switch self {
    case .ephemeral, .everyNode: true
    case .oneNode, .publishOnly: false
    }
  }

  /// The group, if one node handles each message.
  var group: String? {
    if case .oneNode(let group, _, _) = self { group } else { nil }
  }
}
