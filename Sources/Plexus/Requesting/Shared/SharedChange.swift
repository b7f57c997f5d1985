/// A change that another process has made in a ``SharedCacher``.
public enum SharedChange: Hashable, Sendable {
  /// The entries or leases of these keys have changed.
  case changed(Set<String>)
  /// The entries with these tags were removed.
  case tagged(Set<CacheTag>)
  /// Any entry can have changed.
  case everything
  /// The engine cannot be reached: nothing is announced until ``everything``.
  ///
  /// Requests that wait for the fetch of another process look again, and fetch if the engine does not answer.
  case interrupted
}
