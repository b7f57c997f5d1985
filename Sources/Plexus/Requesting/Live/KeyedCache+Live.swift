extension KeyedCache {
  /// Registers a subscriber that keeps a key up to date.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - source: The states of the key.
  ///   - refetching: The reasons to fetch.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription.
  func liveSubscription(
    to key: Key,
    hash: UInt64,
    of source: some HubBacked<LoadState<Value>>,
    refetching: Refetching,
    bufferingPolicy: BufferingPolicy<LoadState<Value>>
  ) -> Subscription<LoadState<Value>> {
    let id = UniqueID.next()
    let live = beginLife(of: key, hash: hash)
    let subscription = source.registered(bufferingPolicy: bufferingPolicy)
    // It ends with the subscription, or with a handler in its place.
    subscription.subscriber.companion = Registration.Closure { [weak self] in
      live.leave(id)
      self?.endLife(live, of: key, hash: hash)
      self?.abandonFlight(of: key, hash: hash)
    }
    live.join(id, refetching)
    return subscription
  }

  private func beginLife(of key: Key, hash: UInt64) -> LiveFetching<Key, Value> {
    let new = LiveFetching(key, hash: hash, in: self)
    return shards.withLock(hash: hash) { shard in
      let extras = shard.makeExtras()
      let index =
        extras.lives.index(of: key, hash: hash)
        ?? extras.lives.insert(new, for: key, hash: hash)
      let live = extras.lives.entries[index].element
      live.addUser()
      // It is not evicted, and does not count towards the capacity.
      if let index = shard.keys.index(of: key, hash: hash) {
        shard.extras?.eviction?.discard(index)
      }
      return live
    }
  }

  private func endLife(_ live: LiveFetching<Key, Value>, of key: Key, hash: UInt64) {
    change(hash, at: .min) { shard, transaction in
      guard let extras = shard.extras else { return }
      let index =
        key == key
        ? extras.lives.index(of: key, hash: hash)
        // Such a key cannot be looked up.
        : extras.lives.entries.firstIndex { $0.element === live }
      guard let index, live.removeUser() else { return }
      transaction.effects.release(extras.lives.remove(at: index))
      // It counts towards the capacity again, with the cost that was computed when it was stored.
      guard let index = shard.keys.index(of: key, hash: hash), shard.hasValue(index),
        let cost = extras.eviction?.cost(at: index)
      else { return }
      shard.keep(index, cost: cost, &transaction)
    }
  }

  /// Cancels the flight of a key that only live subscriptions have observed, once they have ended.
  private func abandonFlight(of key: Key, hash: UInt64) {
    guard policy.whenUnobserved == .cancel || source.limit != nil else { return }
    change(hash, at: .min) { shard, transaction in
      guard let index = shard.keys.index(of: key, hash: hash),
        let running = shard[index].state.running
      else { return }
      abandon(running, &shard, &transaction)
    }
  }

  /// Returns the facts about a key's value.
  func sight(of key: Key, hash: UInt64) -> LiveState.Sight {
    shards.withLock(hash: hash) { shard in
      guard let index = shard.keys.index(of: key, hash: hash) else { return LiveState.Sight() }
      let state = shard[index].state
      return LiveState.Sight(
        hasValue: shard.hasValue(index),
        deadline: state.deadline,
        isOutdated: !state.unserved.isNone,
        isFetching: !state.isAtRest,
        hasFailed: state.failure != nil
      )
    }
  }

  /// Joins the fetch of a key as a caller, or starts one, before this method returns.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - fetch: The fetch that the live subscriptions need.
  /// - Returns: The place of the caller; `nil` if a fresh value or a remembered failure is sufficient.
  func joinFetch(
    of key: Key,
    hash: UInt64,
    for fetch: LiveState.Fetch
  ) -> (flight: Flight, place: WaitPlace)? {
    // Only a stored copy is too old. The value is not marked as outdated, because the fetch can fail.
    let ticket = fetch.isFresh ? drawTicket() : .none
    let caller = Caller(nil, ticket: ticket, at: time.now())
    let tags = tagging?(key)
    var effects = makeEffects()
    let joined = shards.withLock(hash: hash) { shard -> (flight: Flight, place: WaitPlace)? in
      let index = shard.place(of: key, hash: hash, tags: tags)
      if let running = shard[index].state.running {
        let place = running.join()
        if let limit = source.limit { limit.updateCallers(of: running) }
        return (running, place)
      }
      if !fetch.isFresh, shard[index].state.isFresh(at: caller.now) { return nil }
      if fetch.acceptsFailure, shard[index].state.remembersFailure(at: caller.now) { return nil }
      return (begin(index, caller, &shard, &effects), .first)
    }
    effects.perform(in: self)
    return joined
  }

  /// Waits for a fetch that was joined; a cancelled caller leaves it.
  func wait(for joined: (flight: Flight, place: WaitPlace)?) async {
    guard let joined else { return }
    _ = try? await wait(for: joined.flight, in: joined.place, scope: nil)
  }

  /// The clock with which deadlines of values are awaited.
  var liveClock: any ErasedClock { time.clock ?? clock.erased() }
}
