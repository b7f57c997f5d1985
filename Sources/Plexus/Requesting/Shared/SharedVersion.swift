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
