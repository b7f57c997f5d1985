/// The result of storing a fetched value in a ``SharedCacher``.
public enum SharedFill: Hashable, Sendable {
  /// The value was stored.
  case stored
  /// The value was not stored, because everything was removed after the lease was granted.
  case cleared
  /// The value was not stored, because the lease was lost: it has expired, or its key was removed, outdated or stored.
  case superseded
}
