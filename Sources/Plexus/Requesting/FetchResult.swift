/// The result of a successful fetch: a new value, or a confirmation of the previous value.
public enum FetchResult<Value: Sendable>: Sendable {
  /// A new value, with caching rules of its origin.
  ///
  /// The directives replace the policy for this value, also after it was confirmed. The validator is
  /// passed to the next fetch.
  case value(_ value: Value, directives: CacheDirectives, validator: String? = nil)
  /// A confirmation of ``FetchContext/previousValue``, which counts as fetched now.
  ///
  /// The given directives replace all directives of the value; without any, the previous ones apply again. A given time
  /// to live replaces the one of the directives. Without a validator, the previous one stays. If there is no previous
  /// value, the fetch fails with ``MultiplexerError/notModifiedWithoutValue``.
  case notModified(
    timeToLive: Duration? = nil,
    directives: CacheDirectives? = nil,
    validator: String? = nil
  )
  /// The previous value, confirmed, with the changes that its origin has made to what accompanies it, such as header
  /// fields.
  ///
  /// It replaces the previous value, with its directives and validator, and counts as a revalidation.
  case confirmed(_ value: Value, directives: CacheDirectives, validator: String? = nil)
  /// A value for the callers of this fetch only, which must not be cached.
  ///
  /// Subscribers receive it as loaded, but can miss it under the default policy. No later request returns it, and no
  /// cacher stores it. The previous value is removed from memory and storage.
  case transient(_ value: Value)

  /// Returns a new value.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - timeToLive: How long the value is fresh, exactly; `nil` for the time to live of the policy.
  ///   - validator: The validator for the next fetch, such as an entity tag.
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
