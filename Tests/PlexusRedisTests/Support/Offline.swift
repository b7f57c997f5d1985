import Plexus

/// The error of an origin that cannot be reached.
struct Offline: ConnectivityFailure {
  var isConnectivityFailure: Bool { true }
}
