/// An error that can say whether it came about because the other side could not be reached.
///
/// After such a failure a multiplexer hands out the value that it has, by default: see
/// ``CachePolicy/usesCachedValue``. The `PlexusNetworking` module makes `URLError` one. An answer
/// that was received, even a bad one, is none.
public protocol ConnectivityFailure: Error {
  /// Whether the other side could not be reached.
  var isConnectivityFailure: Bool { get }
}
