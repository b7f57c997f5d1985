internal import Synchronization

/// The owners of a cache: the multiplexer itself, and every reference that a refresh has returned.
///
/// The streams end with the last of them.
@usableFromInline
final class CacheOwner<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline let cache: KeyedCache<Key, Value>

  @inlinable
  init(_ cache: KeyedCache<Key, Value>) {
    self.cache = cache
  }

  // No reference is left through which a task could subscribe.
  deinit {
    // Where it is not specialized, as here, ending the streams looks up the metadata of several generic types.
    if cache.hasHadSubscribers.load(ordering: .relaxed) { cache.finishHubs() }
    cache.finishEvents()
  }
}
