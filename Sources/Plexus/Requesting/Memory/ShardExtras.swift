// @unchecked Sendable and unchecked exclusivity: the fields are accessed only through the shard that refers to the
// object, and so under the lock of that shard.

/// The parts of a shard for features that most caches do not use.
///
/// A shard without such a feature consists of the keys and little else: creating a cache, and every request, costs the
/// same however many features there are.
@usableFromInline
final class ShardExtras<Key: Hashable & Sendable, Value: Sendable>: @unchecked Sendable {
  @usableFromInline typealias Edits = Shard<Key, Value>.Edits
  @usableFromInline typealias Hub = Shard<Key, Value>.Hub

  /// The streams of the keys that have subscribers.
  @exclusivity(unchecked) @safe
  @usableFromInline var hubs = KeyTable<Key, Hub>()
  /// The keys that are kept up to date.
  @exclusivity(unchecked) @safe
  @usableFromInline var lives = KeyTable<Key, LiveFetching<Key, Value>>()
  /// The values that are being updated.
  @exclusivity(unchecked) @safe
  @usableFromInline var edits = KeyTable<Key, Edits>()
  /// The eviction policy, if there is a limit.
  @exclusivity(unchecked) @safe
  @usableFromInline var eviction: S3FIFO?
  /// The times at which the values were last used, if there is a time to idle.
  @exclusivity(unchecked) @safe
  @usableFromInline var idleTimes: IdleTimes?
  /// The keys of each tag, if keys have tags.
  @exclusivity(unchecked) @safe
  @usableFromInline var tagIndex: TagIndex<Key>?
  /// The changes that are still to be written to the cacher, if there is one.
  @exclusivity(unchecked) @safe
  @usableFromInline var pendingWrites: PendingWrites<Key, Value>?

  @inlinable
  init() {}

  // MARK: - Following the table

  /// Adds an entry without a value, with the last index.
  @inlinable
  func insert(_ key: Key, hash: UInt64, tags: [CacheTag]?) {
    eviction?.append()
    if let tags { tagIndex?.insert(key, hash: hash, tags: tags) }
    idleTimes?.append()
    pendingWrites?.append()
  }

  /// Removes an entry; the last one takes its index.
  @inlinable
  func remove(at index: Int, _ key: Key, hash: UInt64) {
    eviction?.remove(at: index)
    tagIndex?.remove(key, hash: hash)
    idleTimes?.remove(at: index)
    pendingWrites?.remove(at: index)
  }

  /// Removes all entries.
  func removeAll() {
    eviction?.removeAll()
    if tagIndex != nil { tagIndex = TagIndex() }
    idleTimes?.removeAll()
    pendingWrites?.removeAllStarts()
  }

  /// Records a request: a value that was idle until now is stale from the end of its time to idle.
  ///
  /// - Returns: Whether the value was used in time.
  @inlinable
  func use(_ index: Int, at now: Nanoseconds) -> Bool {
    eviction?.use(index)
    return idleTimes?.use(index, at: now) ?? true
  }

  /// Records that a request was answered with a value.
  ///
  /// - Returns: Whether the value was used in time.
  @inlinable
  func recordHit(_ index: Int, at now: Nanoseconds) -> Bool {
    if idleTimes?.use(index, at: now) == false { return false }
    eviction?.use(index)
    return true
  }
}
