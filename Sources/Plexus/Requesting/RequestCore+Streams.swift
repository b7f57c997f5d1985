extension RequestCore {
  /// Calls the body with the hub of a key and what a new subscriber gets first, such that nothing can
  /// happen to the key in between.
  ///
  /// The hub stays while it has subscribers.
  func withHub<Result>(
    of key: Key,
    hash: UInt64,
    _ body: (BroadcastHub<LoadState<Value>>, [LoadState<Value>]) -> Result
  ) -> Result {
    stripes.withLock(hash: hash) { stripe in
      let state = stripe.keys.index(of: key, hash: hash).map { stripe[$0].loadState } ?? .unknown
      if let index = stripe.hubs.index(of: key, hash: hash) {
        return body(stripe.hubs.entries[index].element, [state])
      }
      let hub = BroadcastHub<LoadState<Value>> { [weak self] in
        self?.removeHub(of: key, hash: hash)
      }
      _ = stripe.hubs.insert(hub, for: key, hash: hash)
      return body(hub, [state])
    }
  }

  /// The number of subscribers of a key.
  func subscriberCount(of key: Key, hash: UInt64) -> Int {
    let hub = stripes.withLock(hash: hash) { stripe in
      stripe.hubs.index(of: key, hash: hash).map { stripe.hubs.entries[$0].element }
    }
    return hub?.subscriberCount ?? 0
  }

  /// Ends every stream: nobody is left who could subscribe.
  func finishStreams() {
    var hubs: [ContiguousArray<KeyTable<Key, BroadcastHub<LoadState<Value>>>.Entry>] = []
    stripes.withEachLock { stripe in
      if !stripe.hubs.isEmpty { hubs.append(stripe.hubs.removeAll()) }
    }
    for entry in hubs.joined() { entry.element.finish() }
    events.finish()
  }

  /// The last subscriber of a key has gone, unless another one has come since.
  private func removeHub(of key: Key, hash: UInt64) {
    let removed = stripes.withLock(hash: hash) { stripe in
      guard let index = stripe.hubs.index(of: key, hash: hash),
        stripe.hubs.entries[index].element.state.withLock({ $0.subscriberCount == 0 })
      else { return KeyTable<Key, BroadcastHub<LoadState<Value>>>.Entry?.none }
      return stripe.hubs.remove(at: index)
    }
    withExtendedLifetime(removed) {}
  }
}

/// What the owners of a core share.
///
/// They are the multiplexer itself and every reference that a refresh has returned. With the last of
/// them the streams end.
final class CoreOwner<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  let core: RequestCore<Key, Value>

  init(_ core: RequestCore<Key, Value>) {
    self.core = core
  }

  deinit {
    core.finishStreams()
  }
}
