/// An error that knows when trying again makes sense, such as an HTTP response with a Retry-After
/// header.
///
/// A ``RetryPolicy`` waits at least that long, even beyond its cap. It does not try again more often.
public protocol RetryAdvice: Error {
  /// How long to wait before the next attempt; `nil` if the error cannot tell.
  var retryAfter: Duration? { get }
}
