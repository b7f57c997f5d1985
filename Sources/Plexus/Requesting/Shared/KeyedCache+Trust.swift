// MARK: - Trust

extension KeyedCache {
  /// Returns whether copies in memory are used without a look in the shared tier.
  ///
  /// If announcements can have been lost, all values in memory are marked first.
  @usableFromInline
  @inline(never)
  func isTrusted() -> Bool {
    guard let link else { return true }
    let generation = link.trust.generation
    if generation != link.seenGeneration {
      distrustAll()
      link.note(seen: generation)
    }
    return link.trust.holds
  }

  /// Listens to the changes of other processes until the cache is released.
  @usableFromInline
  func listen() {
    link?.cacher.observeChanges { [weak self] change in self?.note(change) }
  }

  private func note(_ change: SharedChange) {
    guard let link else { return }
    switch change {
    case .changed(let names):
      for (key, hash) in link.note(changesOf: names) { distrust(key, hash: hash) }
    case .everything:
      if link.trust.generation == link.seenGeneration { distrustAll() } else { _ = isTrusted() }
      _ = link.note(changesOf: nil)
      // The engine can be reachable again.
      share()
    }
  }

  /// Marks the value of a key: it is used again once it has been looked up.
  func distrust(_ key: Key, hash: UInt64) {
    let live = shards.withLock(hash: hash) { shard -> LiveFetching<Key, Value>? in
      shard.distrust(key, hash)
      return shard.live(key, hash)
    }
    live?.confirm()
  }

  /// Marks all values, and detaches all flights: their results are only for their current callers.
  func distrustAll() {
    var effects = makeEffects()
    var lives: [LiveFetching<Key, Value>] = []
    shards.withEachLock { shard in
      lives += shard.extras?.lives.entries.map(\.element.fetching) ?? []
      // From the end, because a removal moves the last entry.
      for index in shard.keys.entries.indices.reversed() {
        let state = shard[index].state
        if state.isAtRest {
          if shard.hasValue(index) { shard[index].state.distrust() }
          continue
        }
        invalidate(state, &effects)
        effects.release(state)
        shard[index].state.cutOff(hasValue: shard.hasValue(index))
        shard.publish(index, &effects)
        shard.removeIfEmpty(index, &effects)
      }
    }
    effects.perform(in: self)
    for live in lives { live.confirm() }
  }

  /// Ends the watch of a flight, whose value is in memory now.
  @usableFromInline
  @inline(never)
  func endWatch(of flight: Flight) {
    guard let link, link.end(flight) else { return }
    let key = key(of: flight)
    shards.withLock(hash: flight.hash) { $0.distrust(key, flight.hash) }
  }
}

extension Shard {
  /// Marks the value of a key, if there is one.
  fileprivate mutating func distrust(_ key: Key, _ hash: UInt64) {
    guard let index = keys.index(of: key, hash: hash), hasValue(index) else { return }
    self[index].state.distrust()
  }
}

// MARK: - Debts

extension KeyedCache {
  /// Marks the values of some keys as changed at their origin, also in the shared tier.
  @usableFromInline
  @inline(never)
  func outdateShared(_ names: [String]) {
    link?.withDebts { $0.outdate(names) }
    share()
  }

  /// Marks all values as changed at their origin, and in the shared tier the values of the known keys.
  func outdateAllShared() {
    guard let link else { return }
    let names = link.knownKeys.map(\.name)
    let now = time.now()
    link.withDebts { debts in
      debts.outdate(names)
      debts.goAhead(at: now)
    }
    share()
  }

  /// Enqueues the pending writes, removals and refreshes of the shared tier.
  @usableFromInline
  func share() {
    guard let link, let storage, link.schedule() else { return }
    storage.queue.add { [self] in
      link.begin()
      _ = await payDebts(link, storage)
    }
  }

  /// Pays the debts, in the queue of the storage.
  private func payDebts(
    _ link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>
  ) async -> Bool {
    let report = await synchronize(storage, flushing: true)
    guard report.hasRemoved, report.failedWrites.isEmpty else { return false }
    do {
      try await storage.calls.run(.write) { try await link.payOutdates() }
      return true
    } catch {
      return false
    }
  }

  /// Pays the debts that concern some keys, if there are any.
  ///
  /// - Returns: Whether the entries of these keys can be used and stored.
  func settleDebts(
    of names: [(name: String, flight: Flight)],
    _ link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>
  ) async -> Bool {
    let isOwing: @Sendable () -> Bool = { [self] in
      if link.withDebts({ $0.hasOutdates(of: names.lazy.map(\.name)) }) { return true }
      return names.contains { name, flight in
        let key = key(of: flight)
        return shards.withLock(hash: flight.hash) { shard in
          shard.extras?.pendingWrites?.owes(key, hash: flight.hash, name: name) ?? false
        }
      }
    }
    guard isOwing() else { return true }
    // A fetch that is part of a call of the cacher would wait for itself.
    guard !storage.queue.isCurrent else { return false }
    await storage.queue.add { [self] in _ = await payDebts(link, storage) }.value
    return !isOwing()
  }
}
