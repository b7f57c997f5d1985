/// The keys of each tag, and the tags of each key.
///
/// Keys are found in time in proportion to their number. Nothing that is removed here is the last reference to a key:
/// the table of keys has it until its entry is released with no lock held.
@usableFromInline
struct TagIndex<Key: Hashable & Sendable>: Sendable {
  /// A key and its hash.
  @usableFromInline typealias HashedKey = (key: Key, hash: UInt64)

  /// The tags of a key.
  fileprivate struct Tags: Sendable {
    var current: [CacheTag]
    /// The tags of values below the visible one, which can become visible again.
    var former: [CacheTag] = []

    var all: [CacheTag] { former.isEmpty ? current : current + former }
  }

  private var keysOfTags: [CacheTag: KeyTable<Key, Bool>] = [:]
  private var tagsOfKeys = KeyTable<Key, Tags>()

  @usableFromInline
  init() {}

  /// Whether no key has a tag.
  var isEmpty: Bool { keysOfTags.isEmpty && tagsOfKeys.isEmpty }

  /// Adds a new key; a key without tags is not stored.
  @usableFromInline
  mutating func insert(_ key: Key, hash: UInt64, tags: [CacheTag]) {
    insert(key, hash: hash, Tags(current: tags))
  }

  private mutating func insert(_ key: Key, hash: UInt64, _ tags: Tags) {
    guard !tags.all.isEmpty else { return }
    _ = tagsOfKeys.insert(tags, for: key, hash: hash)
    for tag in tags.all where keysOfTags[tag]?.index(of: key, hash: hash) == nil {
      _ = keysOfTags[tag, default: KeyTable()].insert(true, for: key, hash: hash)
    }
  }

  /// Removes a key, if it is there.
  @usableFromInline
  mutating func remove(_ key: Key, hash: UInt64) {
    guard let index = tagsOfKeys.index(of: key, hash: hash) else { return }
    for tag in tagsOfKeys.remove(at: index).element.all {
      guard let place = keysOfTags[tag]?.index(of: key, hash: hash) else { continue }
      _ = keysOfTags[tag]?.remove(at: place)
      if keysOfTags[tag]?.isEmpty == true { keysOfTags[tag] = nil }
    }
  }

  /// Replaces the tags of a key, because its value has changed.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - tags: The tags of the visible value.
  ///   - below: The tags of the values below it; `nil` if there are none, so that the tags before are no longer valid.
  @usableFromInline
  mutating func replace(_ key: Key, hash: UInt64, tags: [CacheTag], below: [CacheTag]?) {
    let old = tagsOfKeys.index(of: key, hash: hash).map { tagsOfKeys.entries[$0].element }
    if let old, below == nil, old.former.isEmpty, old.current == tags { return }
    var new = Tags(current: tags)
    if let below {
      for tag in below + (old?.all ?? []) where !new.all.contains(tag) { new.former.append(tag) }
    }
    if old != nil { remove(key, hash: hash) }
    insert(key, hash: hash, new)
  }

  /// Removes the tags of values below the visible one, of which there are none anymore.
  @usableFromInline
  mutating func removeFormer(_ key: Key, hash: UInt64) {
    guard let index = tagsOfKeys.index(of: key, hash: hash),
      !tagsOfKeys.entries[index].element.former.isEmpty
    else { return }
    replace(key, hash: hash, tags: tagsOfKeys.entries[index].element.current, below: nil)
  }

  /// Returns the tags of a key.
  func tags(of key: Key, hash: UInt64) -> [CacheTag] {
    tagsOfKeys.index(of: key, hash: hash).map { tagsOfKeys.entries[$0].element.all } ?? []
  }

  /// The tags of the keys at one moment.
  @usableFromInline
  struct Moment: Sendable {
    fileprivate let tagsOfKeys: KeyTable<Key, Tags>

    /// Returns the tags of a key; called with no lock held.
    @usableFromInline
    func tags(of key: Key, hash: UInt64) -> [CacheTag] {
      tagsOfKeys.index(of: key, hash: hash).map { tagsOfKeys.entries[$0].element.all } ?? []
    }
  }

  /// The present tags of the keys.
  var moment: Moment { Moment(tagsOfKeys: tagsOfKeys) }

  /// Returns the keys that have one of some tags; a key with several of them is returned several times.
  func keys(of tags: Set<CacheTag>) -> [HashedKey] {
    tags.flatMap { tag in (keysOfTags[tag]?.entries ?? []).map { (key: $0.key, hash: $0.hash) } }
  }
}
