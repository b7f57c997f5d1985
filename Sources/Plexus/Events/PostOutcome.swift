/// What has become of a posted event.
public struct PostOutcome: Sendable, Hashable {
  /// The number of subscribers that the event has reached, streams included.
  public let notified: Int
  /// The number of successes among them: handlers that returned ``HandlerResult/handledSuccessfully``
  /// or nothing, and streams that have the event in their buffer.
  public let handled: Int
  /// Whether the event is kept for later subscribers when the post ends.
  public let isPersisted: Bool
  /// Whether the event only stands in the queue.
  ///
  /// It was posted inside a handler that the post would have had to wait for, or inside a fetch that such a
  /// handler waits for: nobody has been notified yet.
  public let isDeferred: Bool
  /// Whether the caller was cancelled before the post had ended.
  ///
  /// The counts are those of the subscribers that had been reached, and of the handlers that had ended, by then.
  public let isIncomplete: Bool

  init(
    notified: Int,
    handled: Int,
    isPersisted: Bool = false,
    isDeferred: Bool = false,
    isIncomplete: Bool = false
  ) {
    self.notified = notified
    self.handled = handled
    self.isPersisted = isPersisted
    self.isDeferred = isDeferred
    self.isIncomplete = isIncomplete
  }
}
