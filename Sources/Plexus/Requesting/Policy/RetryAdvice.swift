/// An error with advice on when to retry, such as an HTTP response with a `Retry-After` field.
///
/// A ``RetryPolicy`` waits at least that long, even beyond its cap. The number of attempts is unchanged.
public protocol RetryAdvice: Error {
  /// The time to wait before the next attempt; `nil` for no advice.
  var retryAfter: Duration? { get }
}
