/// The state of an entry of a cache in a snapshot.
///
/// ## Topics
///
/// ### States
/// - ``fresh``
/// - ``stale``
/// - ``failed``
public enum CacheEntryState: Hashable, Sendable {
  /// The value answers requests without a fetch.
  case fresh
  /// The value is outdated, idle, marked by a refresh, or not trusted: a request fetches, or gets it while it is renewed.
  case stale
  /// The last fetch has failed, and requests get its error until the failure is forgotten.
  case failed
}
