public import Plexus

/// An answer whose status says that it is not what was asked for.
public struct HTTPStatusError: Error, RetryAdvice, OriginFailure, Hashable {
  /// The status code.
  public let status: Int
  /// How long the server asks to wait before the next attempt (Retry-After); `nil` if it does not.
  public let retryAfter: Duration?
  /// Whether the server has allowed the value that there is to stand in (stale-if-error).
  ///
  /// A multiplexer knows that by itself. `CachePolicy.http` heeds it for values from a cacher that keeps
  /// validators and no directives.
  public let allowsStaleValue: Bool

  /// Creates an error, for instance in a transport of your own.
  ///
  /// - Parameters:
  ///   - status: The status code.
  ///   - retryAfter: How long the server asks to wait.
  ///   - allowsStaleValue: Whether the value that there is may stand in.
  public init(status: Int, retryAfter: Duration? = nil, allowsStaleValue: Bool = false) {
    self.status = status
    self.retryAfter = retryAfter
    self.allowsStaleValue = allowsStaleValue
  }
}

extension HTTPStatusError {
  /// Whether the server has failed (5xx), so that a value may stand in for which the server allows that.
  ///
  /// Any other status is an answer: what is gone, or not for this user any more, does not come back from a
  /// cache.
  public var isOriginFailure: Bool { status >= 500 }
}

extension HTTPStatusError: CustomStringConvertible {
  /// A sentence that names the status.
  public var description: String { "The server answered with status \(status)." }
}
