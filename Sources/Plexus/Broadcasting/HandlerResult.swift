/// What a handler could do with a persistent event.
public enum HandlerResult: Sendable, Hashable {
  /// The event has been dealt with: a clearing rule need not keep it.
  case handledSuccessfully
  /// The event has not been dealt with: somebody else should have it.
  case failed
}
