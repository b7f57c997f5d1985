/// What a fetch has found out.
public enum FetchResult<Value: Sendable>: Sendable {
  /// A new value.
  ///
  /// A time to live given here holds in place of the policy's, exactly and also after
  /// ``notModified(timeToLive:)``. The validator is handed to the next fetch.
  case value(_ value: Value, timeToLive: Duration? = nil, validator: String? = nil)
  /// The value that the context named is still the right one: it counts as fetched just now.
  ///
  /// It fails with ``MultiplexerError/notModifiedWithoutValue`` if the context named none. Without a
  /// time to live the one that the fetch of the value gave holds again, or else the policy's.
  case notModified(timeToLive: Duration? = nil)
}
