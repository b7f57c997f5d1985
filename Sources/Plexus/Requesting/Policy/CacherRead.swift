/// The moment at which a multiplexer reads its stored copy: before a fetch, or only after a failed one.
public enum CacherRead: Hashable, Sendable {
  /// After a fetch has failed with an error for which the policy allows a cached value.
  case afterConnectivityError
  /// Before the first fetch, so that stored values are available immediately after a launch.
  case beforeFetch
}
