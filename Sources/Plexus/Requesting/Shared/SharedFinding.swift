/// The result of a lookup of one key in a ``SharedCacher``.
public enum SharedFinding<Value: Sendable>: Sendable {
  /// An entry that satisfies the wish, its age by the engine's clock, and its version.
  case entry(CacheEntry<Value>, age: Duration, SharedVersion)
  /// The lease of the key, whose holder has to fill or release it, and the entry that does not satisfy the wish.
  case granted(FetchLease, previous: CacheEntry<Value>?)
  /// The version of the lease that another caller holds, and the time until it ends unless it is renewed.
  ///
  /// A change of the key is announced when the lease is filled or released.
  case busy(SharedVersion, previous: CacheEntry<Value>?, holderUntil: Duration)
  /// The failure of the fetch that the wish awaits.
  case failedElsewhere(SharedFailure)
  /// No entry that satisfies the wish, which does not request a lease.
  case missing(previous: CacheEntry<Value>?)
}
