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

/// The version of an entry or lease of a ``SharedCacher``: ordered by removals of everything, then by leases.
public struct SharedVersion: Hashable, Comparable, Sendable {
  /// The number of removals of everything.
  public let epoch: UInt64
  /// An identifier that distinguishes epochs with the same number, if the engine has lost data.
  public let nonce: UInt64
  /// The number of the lease.
  public let token: UInt64

  /// Creates a version.
  ///
  /// - Parameters:
  ///   - epoch: The number of removals of everything.
  ///   - nonce: An identifier of the epoch.
  ///   - token: The number of the lease.
  public init(epoch: UInt64, nonce: UInt64, token: UInt64) {
    self.epoch = epoch
    self.nonce = nonce
    self.token = token
  }

  /// Returns whether a version is older than another one.
  ///
  /// - Parameters:
  ///   - left: A version.
  ///   - right: Another one.
  /// - Returns: Whether the first one is older.
  public static func < (left: Self, right: Self) -> Bool {
    (left.epoch, left.nonce, left.token) < (right.epoch, right.nonce, right.token)
  }
}

/// The right to fetch the value of one key of a ``SharedCacher``.
public struct FetchLease: Hashable, Sendable {
  /// The key.
  public let key: String
  /// The version that the fetched value gets.
  public let version: SharedVersion

  /// Creates a lease.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - version: The version that the fetched value gets.
  public init(key: String, version: SharedVersion) {
    self.key = key
    self.version = version
  }
}
