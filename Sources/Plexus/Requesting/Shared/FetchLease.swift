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
