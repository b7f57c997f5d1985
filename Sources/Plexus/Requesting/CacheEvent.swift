/// An event in a multiplexer or a map, for a log.
///
/// Keys are given as text. A multiplexer, which has only one key, is named by its id.
///
/// ## Topics
///
/// ### Fetches
/// - ``fetched(key:outcome:duration:)``
/// - ``fetchFailed(key:error:duration:)``
/// - ``joined(key:count:)``
/// - ``expired(key:)``
/// - ``FetchOutcome``
///
/// ### Values
/// - ``stored(key:)``
/// - ``removed(key:cause:)``
/// - ``RemovalCause``
///
/// ### Storage
/// - ``restored(key:)``
/// - ``flushed(count:)``
/// - ``cacherFailed(key:error:)``
@nonexhaustive
public enum CacheEvent: Sendable {
  /// A fetch has succeeded, with its outcome and its duration, including all attempts.
  ///
  /// Each of the keys that were fetched together has the duration of their fetch.
  case fetched(key: String, outcome: FetchOutcome, duration: Duration)
  /// A fetch has failed after all retries. A cancelled fetch has not failed.
  case fetchFailed(key: String, error: any Error, duration: Duration)
  /// Requests have joined a fetch that another caller had begun: reported once, with their number, when it ends, and before
  /// its outcome.
  ///
  /// Only streams of ``MultiplexerMap/detailedEvents(bufferingPolicy:)`` and
  /// ``Multiplexer/detailedEvents(bufferingPolicy:)`` have it.
  case joined(key: String, count: Int)
  /// A request has found the value past its time to live, and has started a fetch.
  case expired(key: String)
  /// A value was removed from memory, or all values if there is no key.
  case removed(key: String?, cause: RemovalCause)
  /// A value was stored by a caller.
  case stored(key: String)
  /// The stored copy was used instead of a fetch, or after a failed one.
  case restored(key: String)
  /// Values were written to the cacher.
  case flushed(count: Int)
  /// The cacher has failed for one entry, or as a whole if there is no key.
  ///
  /// No request fails because of it.
  case cacherFailed(key: String?, error: any Error)
}

extension CacheEvent {
  /// The outcome of a successful fetch.
  @nonexhaustive
  public enum FetchOutcome: Hashable, Sendable {
    /// A new value.
    case value
    /// A confirmation of the previous value.
    case notModified
    /// A value that must not be cached.
    case transient
  }

  /// The cause of a removal from memory.
  @nonexhaustive
  public enum RemovalCause: Hashable, Sendable {
    /// The value was evicted.
    case capacity
    /// The value was cleared, in memory and stored.
    case cleared
    /// Memory was cleared.
    case memoryCleared
    /// A fetch has returned a value that must not be cached.
    case transient
    /// The value was stale for longer than ``CachePolicy/staleTimeToLive``.
    case expired
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
    case .joined(let key, let count): "the fetch of \(key) was joined by \(count)"
    case .removed(let key, .capacity): "\(key ?? "everything") was evicted"
    case .removed(let key, .cleared): "\(key ?? "everything") was cleared"
    case .removed(let key, .memoryCleared): "\(key ?? "everything") was cleared in memory"
    case .removed(let key, .transient): "\(key ?? "everything") must not be cached"
    case .removed(let key, .expired): "\(key ?? "everything") was too old"
    case .stored(let key): "\(key) was stored"
    case .restored(let key): "the stored copy of \(key) was used"
    case .flushed(let count): "\(count) values were written to the cacher"
    case .cacherFailed(let key, let error): "the cacher failed with \(key ?? "all keys"): \(error)"
    }
  }
}
