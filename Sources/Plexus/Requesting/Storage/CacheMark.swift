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
