public import Foundation
public import Plexus

extension URLError: ConnectivityFailure {
  /// Whether the network, rather than the server or the request, stood in the way.
  ///
  /// These are the errors of a device that is offline, or kept offline by its settings or by a call;
  /// of a connection that was lost or could not be made; of a host name that could not be looked up;
  /// and of a time-out. With the default `CachePolicy`, a cache answers them with the value that it
  /// still has.
  ///
  /// A failure of TLS is none of them, since a certificate that cannot be trusted must never look
  /// like a bad connection; nor is a cancelled transfer, a wrong URL or a bad response.
  public var isConnectivityFailure: Bool {
    switch code {
    case .notConnectedToInternet, .networkConnectionLost, .cannotConnectToHost, .cannotFindHost,
      .dnsLookupFailed, .timedOut, .dataNotAllowed, .internationalRoamingOff, .callIsActive:
      true
    default:
      false
    }
  }
}
