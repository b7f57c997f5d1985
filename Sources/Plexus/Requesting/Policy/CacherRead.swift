/// When a multiplexer reads its stored copy.
public enum CacherRead: Hashable, Sendable {
  /// After a fetch has failed with an error after which a cached value may be used.
  case afterConnectivityError
  /// Before the first fetch, so that what was stored before a restart is there at once.
  case beforeFetch
}
