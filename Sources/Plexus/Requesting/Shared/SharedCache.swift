/// The values that a multiplexer and a ``SharedCacher`` exchange.
///
/// ## Topics
///
/// ### Looking up and fetching
/// - ``Wish``
/// - ``Finding``
/// - ``Lease``
/// - ``Fill``
/// - ``Failure``
///
/// ### Versions and changes
/// - ``Version``
/// - ``Removal``
/// - ``Change``
public enum SharedCache: Sendable {
  /// The requirements of a lookup of one key in a ``SharedCacher``.
  public struct Wish: Hashable, Sendable {
    /// The version that an entry has to be newer than, if any.
    public var newerThan: Version?
    /// Whether to take the lease if no entry satisfies the wish and no other caller holds it.
    ///
    /// Default: `true`.
    public var takesLease = true
    /// The version of the lease that the caller has waited for, if any.
    ///
    /// If its fetch has failed, the finding is ``Finding/failedElsewhere(_:)``.
    public var awaited: Version?
    /// The tags of the key: an entry from before the last removal of one of them does not count.
    ///
    /// They are those of the ``CacheEntry/tags`` of the entries that are filled and stored.
    public var tags: [CacheTag] = []

    /// Creates a wish for any entry, or else the lease.
    public init() {}
  }

  /// The result of a lookup of one key in a ``SharedCacher``.
  public enum Finding<Value: Sendable>: Sendable {
    /// An entry that satisfies the wish, its age by the engine's clock, rounded up, and its version.
    case entry(CacheEntry<Value>, age: Duration, Version)
    /// The lease of the key, whose holder has to fill or release it, and the entry that does not satisfy the wish.
    case granted(Lease, previous: CacheEntry<Value>?)
    /// The version of the lease that another caller holds, and the time until it ends unless it is renewed.
    ///
    /// A change of the key is announced when the lease is filled or released.
    case busy(Version, previous: CacheEntry<Value>?, holderUntil: Duration)
    /// The failure of the fetch that the wish awaits.
    case failedElsewhere(Failure)
    /// No entry that satisfies the wish, which does not request a lease.
    case missing(previous: CacheEntry<Value>?)
  }

  /// The right to fetch the value of one key of a ``SharedCacher``.
  public struct Lease: Hashable, Sendable {
    /// The key.
    public let key: String
    /// The version that the fetched value gets.
    public let version: Version

    /// Creates a lease.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - version: The version that the fetched value gets.
    public init(key: String, version: Version) {
      self.key = key
      self.version = version
    }
  }

  /// The version of an entry or lease of a ``SharedCacher``: ordered by removals of everything, then by leases.
  public struct Version: Hashable, Comparable, Sendable {
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

  /// The result of storing a fetched value in a ``SharedCacher``.
  public enum Fill: Hashable, Sendable {
    /// The value was stored.
    case stored
    /// The value was not stored, because everything was removed after the lease was granted.
    case cleared
    /// The value was not stored, because the lease was lost: it has expired, or its key was removed, outdated or stored.
    case superseded
    /// The value was not stored, because the engine does not take it: it is too large, for example. The reason is `nil` if
    /// it was given before.
    ///
    /// The lease was released. The process can use its copy, as one that was stored: a change of the key is announced.
    case refused(Failure?)
  }

  /// The failure of a fetch in another process.
  public struct Failure: Hashable, ConnectivityFailure, OriginFailure, CustomStringConvertible {
    /// The description of the error.
    public var description: String
    /// Whether the origin could not be reached.
    public var isConnectivityFailure: Bool
    /// Whether the origin has failed; `false` for an answer such as 404 of HTTP.
    public var isOriginFailure: Bool

    /// Creates a failure.
    ///
    /// - Parameters:
    ///   - description: The description of the error.
    ///   - isConnectivityFailure: Whether the origin could not be reached.
    ///   - isOriginFailure: Whether the origin has failed.
    public init(description: String, isConnectivityFailure: Bool, isOriginFailure: Bool) {
      self.description = description
      self.isConnectivityFailure = isConnectivityFailure
      self.isOriginFailure = isOriginFailure
    }

    /// Creates the failure that stands for an error in other processes.
    ///
    /// - Parameter error: The error of a fetch.
    public init(_ error: any Error) {
      if let failure = error as? Failure {
        self = failure
        return
      }
      description = "\(error)"
      isConnectivityFailure = (error as? any ConnectivityFailure)?.isConnectivityFailure ?? false
      isOriginFailure = (error as? any OriginFailure)?.isOriginFailure ?? true
    }
  }

  /// The reason why a value was not stored: its key can have changed since ``CacheEntry/unchangedSince``.
  package struct Overtaken: Error, Hashable {
    package init() {}
  }

  /// The identity of a store of a value by a cache.
  ///
  /// An engine keeps it with the entry: neither an earlier store by the same cache nor the same one, which is repeated because
  /// its reply was lost, is a change since ``CacheEntry/unchangedSince``.
  package struct StoreID: Hashable, Sendable {
    /// The cache.
    package var cache: UInt64
    /// The number of the value, which is higher for each later one of the same key in the same cache.
    package var number: UInt64

    package init(cache: UInt64, number: UInt64) {
      self.cache = cache
      self.number = number
    }

    /// Whether the store is the same as another one, or precedes it.
    package func isIncluded(in other: Self) -> Bool {
      cache == other.cache && number <= other.number
    }
  }

  /// The entries that are removed from a ``SharedCacher``.
  public enum Removal: Hashable, Sendable {
    /// The entries of some keys.
    case keys(Set<String>)
    /// The entries with at least one of some tags, regardless of their keys.
    case tags(Set<CacheTag>)
    /// All entries.
    case all
  }

  /// A change that another process has made in a ``SharedCacher``.
  public enum Change: Hashable, Sendable {
    /// The entries of these keys have changed.
    case changed(Set<String>)
    /// The leases of these keys have changed, and the entries have not: fetches have begun, or ended without a value.
    ///
    /// Requests that wait for the fetch of another process look again. Values in memory stay valid.
    case leased(Set<String>)
    /// The entries with these tags were removed.
    case tagged(Set<CacheTag>)
    /// Any entry can have changed.
    case everything
    /// The engine cannot be reached: nothing is announced until ``everything``.
    ///
    /// Requests that wait for the fetch of another process look again, and fetch if the engine does not answer.
    case interrupted
  }
}
