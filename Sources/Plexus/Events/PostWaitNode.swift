// @unchecked Sendable: required for subclasses of `WaitNode`; all state is immutable.

/// A post that a fetch or a handler waits for.
final class PostWaitNode: WaitNode, @unchecked Sendable {
  private let completion: PostCompletion
  private let channel: EventChannel

  init(_ completion: PostCompletion, in channel: EventChannel) {
    self.completion = completion
    self.channel = channel
    super.init()
  }

  override var isSettled: Bool { completion.hasEnded }

  /// The handler calls that must end first; before the event is posted, all running ones.
  override var others: [WaitNode] {
    channel.runs(upTo: completion.sequence)
  }
}
