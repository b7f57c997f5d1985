/// A change of entries in a cacher, including entries that other instances have written or are about to write.
package enum CacheMark: Hashable, Sendable {
  /// The value of a key has changed at its origin.
  case refreshedKey(String)
  /// The values of all keys with a prefix have changed at their origin.
  case refreshedPrefix(String)
  /// The values with a tag have changed at their origin, in the namespace of the prefix.
  case refreshedTag(CacheTag, prefix: String)
  /// The values with a tag were cleared, in the namespace of the prefix.
  case clearedTag(CacheTag, prefix: String)

  /// Returns the prefix of the namespace of a name in a cacher; empty if it has none.
  package static func prefix(ofName name: String) -> String {
    guard let slash = name.utf8.firstIndex(of: UInt8(ascii: "/")), slash > name.startIndex else {
      return ""
    }
    return String(name[...slash])
  }
}

/// A cacher that records marks for all instances and processes, and can erase what it has removed.
///
/// An entry whose fetch began before a mark is not stored after a clear of one of its tags, and has
/// ``CacheEntry/isCleared`` or ``CacheEntry/isOutdated`` when it is read.
package protocol MarkingCacher<Value>: Cacher {
  /// Records marks in order, each of which counts as one in ``CacheGeneration/marks``.
  ///
  /// - Parameter marks: The marks. When the call returns, clears among them are durable.
  /// - Returns: The generation after the last one.
  /// - Throws: An error of the storage, which may not have recorded them.
  func note(_ marks: [CacheMark]) async throws -> CacheGeneration

  /// Removes the bytes of removed entries, and of temporary files of processes that were killed.
  ///
  /// - Parameter isComplete: Whether the bytes of replaced entries are removed, too.
  /// - Throws: An error of the storage, in which bytes may remain.
  func erase(isComplete: Bool) async throws
}
