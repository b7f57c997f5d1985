/// A report of a connection between an event bus and a link.
///
/// The bus that is connected posts its reports as events, without a scope. Observe them before you connect:
///
/// ```swift
/// import Plexus
///
/// let bus = EventBus()
/// let reports = bus.observe(LinkReport.self) { report in
///   print(report)
/// }
/// ```
///
/// A report that no subscriber reads is lost.
public struct LinkReport: Event {
  /// The change or the problem.
  @nonexhaustive
  public enum Content: Sendable {
    /// Messages after a position are received from now on.
    case connected(at: LinkPosition)
    /// The connection broke, or could not be established. It is attempted again automatically.
    case interrupted(any Error)
    /// The link was closed, and no further message is received.
    case ended
    /// Messages were lost before they were received. Their positions are `nil` if they are unknown.
    ///
    /// An engine that was restarted with old data has lost its latest messages, and can deliver earlier ones to a group
    /// again.
    case gap(lost: ClosedRange<LinkPosition>?)
    /// A message was skipped.
    case skipped(LinkMessage, at: LinkPosition, LinkRejection)
    /// A message was not handled, and will be delivered again.
    case postponed(LinkMessage, at: LinkPosition, attempt: Int, LinkRejection)
    /// A message was moved to the dead letters of its group.
    case rejected(LinkMessage, at: LinkPosition, attempt: Int, LinkRejection)
    /// The engine did not confirm an acknowledgement or a rejection. The message can be delivered again.
    case unconfirmed(LinkMessage, at: LinkPosition, any Error)
    /// A message of a messenger could not be published.
    case unsent(any Error)
    /// Messages of a messenger were dropped, because the link was too slow.
    case dropped(count: Int)
  }

  /// The topic of the connection.
  public let topic: String
  /// The change or the problem.
  public let content: Content

  init(topic: String, _ content: Content) {
    self.topic = topic
    self.content = content
  }
}

/// The reason why a message was not handled.
@nonexhaustive
public enum LinkRejection: Error, Hashable, Sendable {
  /// The message has the name of another event type, or none.
  case foreignType(String)
  /// The message has another version.
  case foreignVersion(Int)
  /// The body cannot be decoded.
  case undecodable(reason: String)
  /// Not all handlers have succeeded, or there are none.
  case unhandled(notified: Int, handled: Int)
  /// The message was delivered too many times without an acknowledgement.
  case tooManyAttempts
}

extension LinkRejection: CustomStringConvertible {
  /// A description of the reason.
  public var description: String {
    switch self {
    case .foreignType(let type): "The message is of the type \"\(type)\"."
    case .foreignVersion(let version): "The message has the version \(version)."
    case .undecodable(let reason): "The body cannot be decoded: \(reason)"
    case .unhandled(0, _): "The node has no handler."
    case .unhandled(let notified, let handled):
      "Of \(notified) handlers, \(handled) have succeeded."
    case .tooManyAttempts: "The message was delivered too many times without an acknowledgement."
    }
  }
}
