/// A change that another process has made in a ``SharedCacher``.
public enum SharedChange: Hashable, Sendable {
  /// The entries or leases of these keys have changed.
  case changed(Set<String>)
  /// The entries with these tags were removed.
  case tagged(Set<CacheTag>)
  /// Any entry can have changed.
  case everything
}

/// The result of storing a fetched value in a ``SharedCacher``.
public enum SharedFill: Hashable, Sendable {
  /// The value was stored.
  case stored
  /// The value was not stored, because everything was removed after the lease was granted.
  case cleared
  /// The value was not stored, because the lease was lost: it has expired, or its key was removed, outdated or stored.
  case superseded
}

/// The entries that are removed from a ``SharedCacher``.
public enum SharedRemoval: Hashable, Sendable {
  /// The entries of some keys.
  case keys(Set<String>)
  /// The entries with at least one of some tags, regardless of their keys.
  case tags(Set<CacheTag>)
  /// All entries.
  case all
}

/// The processes for which a removal holds when the call returns.
public enum ClearReach: Hashable, Sendable {
  /// This process.
  case here
  /// The engine of a ``SharedCacher``: other processes follow within the time for which they trust their copies.
  case shared
  /// All processes: no request that begins afterwards is answered with a value that was fetched before.
  ///
  /// If a process does not respond, the call waits until the trust of that process has expired.
  case everywhere
}

/// The failure of a fetch in another process.
public struct SharedFailure: Hashable, ConnectivityFailure, OriginFailure, CustomStringConvertible {
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
    if let failure = error as? SharedFailure {
      self = failure
      return
    }
    description = "\(error)"
    isConnectivityFailure = (error as? any ConnectivityFailure)?.isConnectivityFailure ?? false
    isOriginFailure = (error as? any OriginFailure)?.isOriginFailure ?? true
  }
}
