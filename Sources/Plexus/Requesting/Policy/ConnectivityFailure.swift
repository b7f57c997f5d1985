/// An error that can indicate that the origin could not be reached.
///
/// By default, a multiplexer returns its cached value after such an error: see ``CachePolicy/usesCachedValue``.
/// `PlexusNetworking` conforms `URLError`. A response, even an error response, is not a connectivity failure.
public protocol ConnectivityFailure: Error {
  /// Whether the origin could not be reached.
  var isConnectivityFailure: Bool { get }
}
