/// Something that has happened in a multiplexer or a map, for a log.
///
/// Keys appear as text; a multiplexer, which has only one, appears by its id.
@nonexhaustive
public enum CacheEvent: Sendable {
  /// A fetch has brought a value.
  case fetched(key: String)
  /// A fetch has failed in the end, after all retries; one that was cancelled has not.
  case fetchFailed(key: String, error: any Error)
  /// A request found that the value is past its time to live, and a fetch has begun.
  case expired(key: String)
  /// A value had to make room for others.
  case evicted(key: String)
  /// A value was stored from outside.
  case stored(key: String)
  /// The stored copy was used in place of a fetch, or after one that failed.
  case restored(key: String)
  /// A value was cleared; all of them if no key is named.
  case cleared(key: String?)
  /// Values were written to the cacher.
  case flushed(count: Int)
  /// The cacher failed with one entry, or as a whole if no key is named.
  ///
  /// No request fails because of it.
  case cacherFailed(key: String?, error: any Error)
}

extension CacheEvent: CustomStringConvertible {
  /// A line for a log.
  public var description: String {
    switch self {
    case .fetched(let key): "fetched \(key)"
    case .fetchFailed(let key, let error): "fetching \(key) failed: \(error)"
    case .expired(let key): "\(key) has expired"
    case .evicted(let key): "\(key) had to make room"
    case .stored(let key): "\(key) was stored"
    case .restored(let key): "the stored copy of \(key) was used"
    case .cleared(let key): "\(key ?? "everything") was cleared"
    case .flushed(let count): "\(count) values were written to the cacher"
    case .cacherFailed(let key, let error): "the cacher failed with \(key ?? "all keys"): \(error)"
    }
  }
}
