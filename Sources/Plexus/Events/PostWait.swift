// @unchecked Sendable because Swift asks for it of every subclass of `WaitNode`: nothing in it changes.

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

  /// The calls of handlers that have to end first; before the event is posted all that are under way.
  override var others: [WaitNode] {
    channel.runs(upTo: ticket.sequence)
  }
}
