internal import Synchronization

extension KeyedCache {
  /// Calls the body with the hub of a key and the elements that a new subscriber gets first, in one
  /// critical section.
  ///
  /// The hub stays while it has subscribers.
  @inlinable
  func withHub<Result>(
    of key: Key,
    hash: UInt64,
    _ body: (BroadcastHub<LoadState<Value>>, [LoadState<Value>]) -> Result
  ) -> Result {
    recordSubscriber()
    return shards.withLock(hash: hash) { shard in
      let state = shard.keys.index(of: key, hash: hash).map { shard.loadState($0) } ?? .unknown
      if let hub = shard.hub(of: key, hash: hash) { return body(hub, [state]) }
      let hub = BroadcastHub<LoadState<Value>>(isResettable: true) { [weak self] in
        self?.removeHub(of: key, hash: hash)
      }
      _ = shard.makeExtras().hubs.insert(hub, for: key, hash: hash)
      return body(hub, [state])
    }
  }

  /// Returns the hub of a key, if it has subscribers.
  func presentHub(of key: Key, hash: UInt64) -> BroadcastHub<LoadState<Value>>? {
    shards.withLock(hash: hash) { $0.hub(of: key, hash: hash) }
  }

  /// Returns the state that a new subscriber of a key gets first.
  @usableFromInline
  func loadState(of key: Key, hash: UInt64) -> LoadState<Value> {
    shards.withLock(hash: hash) { shard in
      shard.keys.index(of: key, hash: hash).map { shard.loadState($0) } ?? .unknown
    }
  }

  /// Returns the number of subscribers of a key.
  func subscriberCount(of key: Key, hash: UInt64) -> Int {
    let hub = shards.withLock(hash: hash) { shard in
      shard.hub(of: key, hash: hash)
    }
    return hub?.subscriberCount ?? 0
  }

  /// Ends the streams of all keys.
  @inline(never)
  func finishHubs() {
    var hubs: [ContiguousArray<KeyTable<Key, BroadcastHub<LoadState<Value>>>.Entry>] = []
    var lives: [LiveFetching<Key, Value>] = []
    shards.withEachLock { shard in
      if let extras = shard.extras, !extras.hubs.isEmpty { hubs.append(extras.hubs.removeAll()) }
      lives += shard.allLives
    }
    for entry in hubs.joined() { entry.element.finish() }
    for live in lives { live.finish() }
  }

  /// Removes the hub of a key without subscribers, unless a new one has been registered since.
  @inlinable
  func removeHub(of key: Key, hash: UInt64) {
    let removed = shards.withLock(hash: hash) { shard in
      guard let extras = shard.extras else {
        return KeyTable<Key, BroadcastHub<LoadState<Value>>>.Entry?.none
      }
      let index =
        key == key
        ? extras.hubs.index(of: key, hash: hash)
        // Such a key cannot be looked up: one of its hubs that have no subscribers is this one.
        : extras.hubs.entries.firstIndex { $0.key != $0.key && $0.element.hasNoSubscribers }
      guard let index, extras.hubs.entries[index].element.hasNoSubscribers else { return nil }
      return extras.hubs.remove(at: index)
    }
    withExtendedLifetime(removed) {}
  }
}

extension BroadcastHub {
  /// Whether no subscriber is registered.
  @usableFromInline var hasNoSubscribers: Bool {
    state.withLock { $0.subscriberCount == 0 }
  }
}
