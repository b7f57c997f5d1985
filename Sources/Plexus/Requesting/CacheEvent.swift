/// Something that has happened in a multiplexer or a map, for a log.
///
/// Keys appear as text; a multiplexer, which has only one, appears by its id.
@nonexhaustive
public enum CacheEvent: Sendable {
  /// A fetch has succeeded, with what it brought and the time that it took, all attempts included.
  ///
  /// Keys that were fetched together have the duration of their fetch each.
  case fetched(key: String, outcome: FetchOutcome, duration: Duration)
  /// A fetch has failed in the end, after all retries; one that was cancelled has not.
  case fetchFailed(key: String, error: any Error, duration: Duration)
  /// A request found that the value is past its time to live, and a fetch has begun.
  case expired(key: String)
  /// A value has left memory; all values if no key is named.
  case removed(key: String?, cause: RemovalCause)
  /// A value was stored from outside.
  case stored(key: String)
  /// The stored copy was used in place of a fetch, or after one that failed.
  case restored(key: String)
  /// Values were written to the cacher.
  case flushed(count: Int)
  /// The cacher failed with one entry, or as a whole if no key is named.
  ///
  /// No request fails because of it.
  case cacherFailed(key: String?, error: any Error)
}

extension CacheEvent {
  /// The outcomes of fetches that have succeeded.
  @nonexhaustive
  public enum FetchOutcome: Hashable, Sendable {
    /// A new value.
    case value
    /// A confirmation of the value that was there.
    case notModified
    /// A value that must not be cached.
    case transient
  }

  /// The reasons for which values leave memory.
  @nonexhaustive
  public enum RemovalCause: Hashable, Sendable {
    /// It had to make room for others.
    case capacity
    /// It was cleared, in memory and stored.
    case cleared
    /// Memory was cleared.
    case memoryCleared
    /// A fetch has brought a value that must not be cached.
    case transient
  }
}

extension CacheEvent: CustomStringConvertible {
  /// A line for a log.
  public var description: String {
    switch self {
    case .fetched(let key, .notModified, _): "\(key) was confirmed"
    case .fetched(let key, _, _): "fetched \(key)"
    case .fetchFailed(let key, let error, _): "fetching \(key) failed: \(error)"
    case .expired(let key): "\(key) has expired"
    case .removed(let key, .capacity): "\(key ?? "everything") had to make room"
    case .removed(let key, .cleared): "\(key ?? "everything") was cleared"
    case .removed(let key, .memoryCleared): "\(key ?? "everything") was cleared in memory"
    case .removed(let key, .transient): "\(key ?? "everything") must not be cached any more"
    case .stored(let key): "\(key) was stored"
    case .restored(let key): "the stored copy of \(key) was used"
    case .flushed(let count): "\(count) values were written to the cacher"
    case .cacherFailed(let key, let error): "the cacher failed with \(key ?? "all keys"): \(error)"
    }
  }
}
