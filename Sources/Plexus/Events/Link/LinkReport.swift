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
/// A report that no subscriber reads is lost. Handlers of reports and of messages have a task each: a report of a gap can
/// be handled after the messages that follow the gap.
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
