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
