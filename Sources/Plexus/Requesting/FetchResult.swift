/// What a fetch has found out.
public enum FetchResult<Value: Sendable>: Sendable {
  /// A new value.
  ///
  /// A time to live given here holds in place of the policy's, exactly and also after
  /// ``notModified(timeToLive:)``. The validator is handed to the next fetch.
  case value(_ value: Value, timeToLive: Duration? = nil, validator: String? = nil)
  /// The value that the context named is still the right one: it counts as fetched just now.
  ///
  /// It fails with ``MultiplexerError/notModifiedWithoutValue`` if the context named none. Without a time to
  /// live the one that the fetch of the value gave holds again, or else the policy's. Other directives that
  /// came with the value hold again, too.
  case notModified(timeToLive: Duration? = nil)
  /// A new value, with all that its origin says about keeping it.
  ///
  /// The directives hold in place of the policy, also after ``notModified(timeToLive:)``. The validator is
  /// handed to the next fetch.
  case fetched(_ value: Value, directives: CacheDirectives, validator: String? = nil)
  /// The value that the context named is still the right one, with all that its origin says about keeping it
  /// from now on.
  ///
  /// The directives take the place of those that the value came with; a validator that is not given stays. It
  /// fails with ``MultiplexerError/notModifiedWithoutValue`` if the context named no value.
  case revalidated(directives: CacheDirectives, validator: String? = nil)
  /// A value for those who wait for this fetch, which must not be kept.
  ///
  /// They get it, and subscribers are told that it was loaded; one that keeps the newest state only, as by
  /// default, may miss that. Then it is forgotten: no later request is answered with it, and no cacher gets
  /// it. It is newer than what was there before, which goes, too: the value in memory and the stored copy.
  case transient(_ value: Value)
}
