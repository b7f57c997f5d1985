/// The origin of the value in a response.
public enum ResponseSource: Hashable, Sendable {
  /// A fetch that the caller waited for.
  case fetch
  /// Memory.
  case memory
  /// The stored copy.
  case cacher
}
