/// An error that distinguishes a failing origin from a definitive answer, such as 404.
///
/// ``CacheDirectives/staleIfError`` allows a stale value only if the origin fails: a removed or forbidden value must
/// not come back from a cache. So after a definitive answer, the cached value is not used once it is stale, until the
/// origin confirms it, unless `CachePolicy.usesCachedValue` allows it for the error. Errors that do not conform count
/// as failures.
public protocol OriginFailure: Error {
  /// Whether the origin has failed; `false` for a definitive answer, such as HTTP status 404.
  var isOriginFailure: Bool { get }
}
