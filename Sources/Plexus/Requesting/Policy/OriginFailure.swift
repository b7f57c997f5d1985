/// An error that knows whether the origin has failed, or has answered that there is no such value for the one
/// who asks.
///
/// ``CacheDirectives/staleIfError`` lets a value stand in for the former only: what the origin has removed or
/// does not show any more must not come back from a cache. Errors that do not conform count as failures.
public protocol OriginFailure: Error {
  /// Whether the origin has failed; `false` for an answer such as 404 of HTTP.
  var isOriginFailure: Bool { get }
}
