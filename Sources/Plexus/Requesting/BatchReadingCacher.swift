/// A cacher that reads several entries with one call, such as a database.
///
/// A map that fetches several keys at once reads their stored copies with one call. From other cachers, it reads up to
/// 16 entries concurrently.
public protocol BatchReadingCacher<Value>: Cacher {
  /// Returns the entries of some keys.
  ///
  /// - Parameter keys: The keys.
  /// - Returns: The entries as they were stored, without keys that have no usable one.
  /// - Throws: An error of the storage itself.
  func entries(forKeys keys: Set<String>) async throws -> [String: CacheEntry<Value>]
}
