/// The origin of the value in a response.
public enum ResponseSource: Hashable, Sendable {
  /// A fetch that the caller waited for.
  case fetch
  /// The value in memory.
  case memory
  /// The stored copy of the cacher.
  case cacher
}
