/// The reason why a message was not handled.
@nonexhaustive
public enum LinkRejection: Error, Hashable, Sendable {
  /// The message has the name of another event type, or none.
  case foreignType(String)
  /// The message has another version.
  case foreignVersion(Int)
  /// The body cannot be decoded.
  case undecodable(reason: String)
  /// Not all handlers have succeeded, or there are none.
  case unhandled(notified: Int, handled: Int)
  /// The message was delivered too many times without an acknowledgement.
  case tooManyAttempts
}

extension LinkRejection: CustomStringConvertible {
  /// A description of the reason.
  public var description: String {
    switch self {
    case .foreignType(let type): "The message is of the type \"\(type)\"."
    case .foreignVersion(let version): "The message has the version \(version)."
    case .undecodable(let reason): "The body cannot be decoded: \(reason)"
    case .unhandled(0, _): "The node has no handler."
    case .unhandled(let notified, let handled):
      "Of \(notified) handlers, \(handled) have succeeded."
    case .tooManyAttempts: "The message was delivered too many times without an acknowledgement."
    }
  }
}
