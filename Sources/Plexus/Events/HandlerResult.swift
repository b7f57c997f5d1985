/// The result of handling a persistent event.
public enum HandlerResult: Sendable, Hashable {
  /// The event was handled. A clearing rule does not need to retain it.
  case handledSuccessfully
  /// The event was not handled, and should be offered to other subscribers.
  case failed
}
