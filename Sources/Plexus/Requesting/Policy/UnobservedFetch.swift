/// The behavior of a fetch when its last caller leaves.
public enum UnobservedFetch: Hashable, Sendable {
  /// The fetch continues, and its value is stored for later requests.
  case finishAndStore
  /// The fetch is cancelled, and nothing is stored.
  ///
  /// A fetch that started without a caller, behind a stale value or for a refresh during a fetch, is not cancelled when
  /// a caller that has joined it leaves.
  case cancel
}
