/// An error of waiting for a subscriber.
@nonexhaustive
public enum BroadcastError: Error, Hashable, Sendable {
  /// The broadcaster has finished, so that no subscriber can be added.
  case finished
}

extension BroadcastError: CustomStringConvertible {
  /// A description of the error and its solution.
  public var description: String {
    switch self {
    case .finished:
      "The broadcaster ended without a subscriber. Wait for a subscriber before you call finish()."
    }
  }
}
