/// The requirements of a lookup of one key in a ``SharedCacher``.
public struct SharedWish: Hashable, Sendable {
  /// The version that an entry has to be newer than, if any.
  public var newerThan: SharedVersion?
  /// Whether to take the lease if no entry satisfies the wish and no other caller holds it.
  ///
  /// Default: `true`.
  public var takesLease = true
  /// The version of the lease that the caller has waited for, if any.
  ///
  /// If its fetch has failed, the finding is ``SharedFinding/failedElsewhere(_:)``.
  public var awaited: SharedVersion?
  /// The tags of the key: an entry from before the last removal of one of them does not count.
  ///
  /// They are those of the ``CacheEntry/tags`` of the entries that are filled and stored.
  public var tags: [CacheTag] = []

  /// Creates a wish for any entry, or else the lease.
  public init() {}
}
