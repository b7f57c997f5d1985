/// The keys of each tag, and the tags of each key.
///
/// Keys are found in time in proportion to their number. Nothing that is removed here is the last reference to a key:
/// the table of keys has it until its entry is released with no lock held.
@usableFromInline
struct TagIndex<Key: Hashable & Sendable>: Sendable {
  /// A key and its hash.
  @usableFromInline typealias HashedKey = (key: Key, hash: UInt64)

  private var keysOfTags: [CacheTag: KeyTable<Key, Bool>] = [:]
  private var tagsOfKeys = KeyTable<Key, [CacheTag]>()

  @usableFromInline
  init() {}

  /// Whether no key has a tag.
  var isEmpty: Bool { keysOfTags.isEmpty && tagsOfKeys.isEmpty }

  /// Adds a new key; a key without tags is not stored.
  @usableFromInline
  mutating func insert(_ key: Key, hash: UInt64, tags: [CacheTag]) {
    guard !tags.isEmpty else { return }
    _ = tagsOfKeys.insert(tags, for: key, hash: hash)
    for tag in tags where keysOfTags[tag]?.index(of: key, hash: hash) == nil {
      _ = keysOfTags[tag, default: KeyTable()].insert(true, for: key, hash: hash)
    }
  }

  /// Removes a key, if it is there.
  @usableFromInline
  mutating func remove(_ key: Key, hash: UInt64) {
    guard let index = tagsOfKeys.index(of: key, hash: hash) else { return }
    for tag in tagsOfKeys.remove(at: index).element {
      guard let place = keysOfTags[tag]?.index(of: key, hash: hash) else { continue }
      _ = keysOfTags[tag]?.remove(at: place)
      if keysOfTags[tag]?.isEmpty == true { keysOfTags[tag] = nil }
    }
  }

  /// Returns the tags of a key.
  func tags(of key: Key, hash: UInt64) -> [CacheTag] {
    tagsOfKeys.index(of: key, hash: hash).map { tagsOfKeys.entries[$0].element } ?? []
  }

  /// Returns the keys that have one of some tags; a key with several of them is returned several times.
  func keys(of tags: Set<CacheTag>) -> [HashedKey] {
    tags.flatMap { tag in (keysOfTags[tag]?.entries ?? []).map { (key: $0.key, hash: $0.hash) } }
  }
}
