/// The entries that are removed from a ``SharedCacher``.
public enum SharedRemoval: Hashable, Sendable {
  /// The entries of some keys.
  case keys(Set<String>)
  /// The entries with at least one of some tags, regardless of their keys.
  case tags(Set<CacheTag>)
  /// All entries.
  case all
}
