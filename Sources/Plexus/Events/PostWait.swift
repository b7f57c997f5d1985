// @unchecked Sendable: required for subclasses of `WaitNode`; all state is immutable.

/// A post that a fetch or a handler waits for.
final class PostWait: WaitNode, @unchecked Sendable {
  private let ticket: PostTicket
  private let channel: EventChannel

  init(_ ticket: PostTicket, in channel: EventChannel) {
    self.ticket = ticket
    self.channel = channel
    super.init()
  }

  override var isSettled: Bool { ticket.hasEnded }

  /// The handler calls that must end first; before the event is posted, all running ones.
  override var others: [WaitNode] {
    channel.runs(upTo: ticket.sequence)
  }
}
