/// The result of a successful fetch: a new value, or a confirmation of the value that was already there.
public enum FetchResult<Value: Sendable>: Sendable {
  /// A new value, with what its origin says about caching it.
  ///
  /// The directives replace the policy for this value, also after it was confirmed. The validator is
  /// passed to the next fetch.
  case value(_ value: Value, directives: CacheDirectives, validator: String? = nil)
  /// The value in ``FetchContext/previousValue`` is still current. It counts as fetched now.
  ///
  /// Directives replace all of those that came with the value; without any, those apply again. A time to live
  /// given here replaces the one of the directives. Without a validator, the previous one stays. If the context
  /// has no previous value, the fetch fails with ``MultiplexerError/notModifiedWithoutValue``.
  case notModified(
    timeToLive: Duration? = nil,
    directives: CacheDirectives? = nil,
    validator: String? = nil
  )
  /// A value for the callers of this fetch only, which must not be cached.
  ///
  /// Subscribers are told that it was loaded; one that keeps the newest state only, which is the default, may
  /// miss it. No later request is answered with it, and no cacher stores it. It also replaces what was cached
  /// before: the value in memory and the stored copy are removed.
  case transient(_ value: Value)

  /// Returns a new value.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - timeToLive: How long the value is fresh, exactly; `nil` for the time to live of the policy.
  ///   - validator: Passed to the next fetch, such as an entity tag.
  /// - Returns: The result.
  @inlinable
  public static func value(
    _ value: Value,
    timeToLive: Duration? = nil,
    validator: String? = nil
  ) -> FetchResult {
    .value(value, directives: CacheDirectives(timeToLive: timeToLive), validator: validator)
  }
}
