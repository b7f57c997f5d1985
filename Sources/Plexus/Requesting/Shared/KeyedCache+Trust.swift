// Unsafe: the trust is read at every hit without reference counting. The link of the cache keeps it.

// MARK: - Trust

extension KeyedCache {
  /// Returns whether copies in memory are used without a look in the shared tier.
  ///
  /// - Parameter now: The time of the cache, read just before.
  /// - Returns: Whether they are.
  @inlinable
  func usesCopies(at now: Nanoseconds) -> Bool {
    guard let copyTrust = unsafe copyTrust else { return true }
    if time.clock == nil, unsafe copyTrust._withUnsafeGuaranteedRef({ $0.holds(at: now) }) {
      return true
    }
    return isTrusted()
  }

  /// Returns whether copies in memory are used without a look in the shared tier, with the clock of the trust.
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
    case .tagged(let tags):
      let keys = keys(of: tags)
      _ = link.note(changesOf: Set(keys.compactMap { storage?.name(of: $0.key) }))
      for (key, hash) in keys { distrust(key, hash: hash) }
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
        distrust(index, &shard, &effects)
      }
    }
    effects.perform(in: self)
    for live in lives { live.confirm() }
  }

  /// Marks the value of a key, and detaches its flights.
  private func distrust(
    _ index: Int,
    _ shard: inout Shard<Key, Value>,
    _ effects: inout Effects
  ) {
    let state = shard[index].state
    if state.isAtRest {
      if shard.hasValue(index) { shard[index].state.distrust() }
      return
    }
    invalidate(state, &effects)
    effects.release(state)
    shard[index].state.cutOff(hasValue: shard.hasValue(index))
    shard.publish(index, &effects)
    shard.removeIfEmpty(index, &effects)
  }

  /// Removes the value of a key from memory, and detaches its flights.
  func forgetHere(_ key: Key, hash: UInt64) {
    var effects = makeEffects()
    shards.withLock(hash: hash) { shard in
      guard let index = shard.keys.index(of: key, hash: hash) else { return }
      distrust(index, &shard, &effects)
    }
    effects.perform(in: self)
    clearMemory(key, hash: hash)
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
      try await storage.calls.run(.removal) { try await link.payTagRemovals() }
      try await storage.calls.run(.write) { try await link.payOutdates() }
      return true
    } catch {
      return false
    }
  }

  /// Removes the entries with one of some tags from the shared tier.
  ///
  /// - Throws: The error because of which entries can remain. The removal is repeated before such an entry is used.
  @usableFromInline
  func removeSharedTags() async throws {
    guard let link, let storage else { return }
    let failure = Locked<(any Error)?>(nil)
    let turn = storage.queue.add { [self] in
      do {
        try await storage.calls.run(.removal) { try await link.payTagRemovals() }
      } catch {
        noteCacherError([:], error)
        failure.withLock { $0 = error }
      }
    }
    guard !storage.queue.isCurrent else { return }
    await turn.value
    if let error = failure.withLock({ $0 }) { throw error }
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
      let (hasOutdates, tags) = link.withDebts { debts in
        (debts.hasOutdates(of: names.lazy.map(\.name)), debts.owedTags)
      }
      if hasOutdates { return true }
      return names.contains { name, flight in
        let key = key(of: flight)
        if !tags.isEmpty, let tagging, tagging(key).contains(where: { tags[$0] != nil }) {
          return true
        }
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
