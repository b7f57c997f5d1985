/// The result of a post.
///
/// ## Topics
///
/// ### Counts
/// - ``notified``
/// - ``handled``
///
/// ### Flags
/// - ``isPersisted``
/// - ``isDeferred``
/// - ``isIncomplete``
public struct PostOutcome: Sendable, Hashable {
  /// The number of subscribers that received the event, including streams.
  public let notified: Int
  /// The number of successes: handlers that returned nothing or ``HandlerResult/handledSuccessfully``, and
  /// streams that have the event in their buffer.
  public let handled: Int
  /// Whether the event is retained for later subscribers at the end of the post.
  public let isPersisted: Bool
  /// Whether the event is still queued and no subscriber has received it.
  ///
  /// The event was posted inside a handler that the post would have had to wait for, or inside a fetch that
  /// such a handler waits for.
  public let isDeferred: Bool
  /// Whether the caller was cancelled before the post ended.
  ///
  /// The counts then include the subscribers reached and the handlers that had finished by that time.
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
