/// The reasons why waiting for a broadcaster is in vain.
@nonexhaustive
public enum BroadcastError: Error, Hashable, Sendable {
  /// The broadcaster has ended before anybody has subscribed, and nobody can any more.
  case finished
}

extension BroadcastError: CustomStringConvertible {
  /// A sentence that says what happened and what to do about it.
  public var description: String {
    switch self {
    case .finished:
      "Nobody has subscribed before the broadcaster ended. Wait for subscribers before it finishes."
    }
  }
}
