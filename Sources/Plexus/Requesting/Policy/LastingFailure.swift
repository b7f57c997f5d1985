/// An error that its origin has declared fresh for some time, such as an HTTP status 404 with `max-age`.
///
/// It is remembered for that time, as for ``CachePolicy/failureTimeToLive``; the longer of both counts.
package protocol LastingFailure: Error {
  /// The time for which the failure is remembered; `nil` for that of the policy.
  var lifetime: Duration? { get }
}
