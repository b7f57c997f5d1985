extension KeyedCache {
  /// Stores a value from outside.
  @inlinable
  func store(_ value: Value, for key: Key, hash: UInt64) {
    // A key that is not equal to itself, such as a NaN, would never be found again.
    guard key == key else { return }
    let now = time.now()
    let lifetime = lifetime()
    // All of this is the user's code.
    let cost = cost(of: value)
    let name = storage?.name(of: key)
    let generation = storage?.generation
    let tags = tagging?(key)
    var effects = makeEffects()
    var old: Value?
    var details: EntryDetails.Box?
    var evicted = Shard<Key, Value>.Evicted()
    shards.withLock(hash: hash) { shard in
      let index = shard.place(of: key, hash: hash, tags: tags)
      if !shard[index].state.isAtRest {
        settle(index, with: value, storedAt: now, &shard, &effects)
      }
      details = shard[index].state.box
      old = shard.setValue(value, at: index)
      if shard.hasEdits { shard.replaceEdits(index, &effects) }
      shard[index].state.store(lifetime, at: now)
      shard.extras?.idleTimes?.renew(index, at: now)
      shard.publish(index, &effects)
      shard.noteUnwritten(index, name: name, generation: generation, isNewest: true, &effects)
      if effects.tellsEvents { shard.note(key, &effects, in: self) { .stored(key: $0) } }
      shard.keep(index, cost: cost, &evicted, &effects, in: self)
    }
    effects.perform(in: self)
    withExtendedLifetime((old, details)) {}
    withExtendedLifetime(evicted) {}
  }

  /// Gives the callers that wait for the flights of a place a value that was stored.
  @usableFromInline
  @inline(never)
  func settle(
    _ index: Int,
    with value: Value,
    storedAt: Nanoseconds,
    _ shard: inout Shard<Key, Value>,
    _ effects: inout Effects
  ) {
    let state = shard[index].state
    let outcome = ValueOutcome(value)
    outcome.source = .memory
    outcome.storedAt = storedAt
    for flight in [state.running, state.queued] {
      guard let flight else { continue }
      if let predecessor = flight.settle() { effects.release(object: predecessor) }
      effects.settle(flight, with: outcome)
      if policy.whenUnobserved == .cancel { effects.cancel(flight) }
    }
  }

  /// Notes that the value of a key has changed at its origin.
  @inlinable
  func refresh(_ key: Key, hash: UInt64) -> RefreshTicket {
    let name = storage?.name(of: key)
    if link != nil, let name { outdateShared([name]) }
    var details: EntryDetails.Box?
    var live: LiveFetching<Key, Value>?
    let ticket = shards.withLock(hash: hash) { shard in
      let ticket = drawTicket()
      live = shard.live(key, hash)
      if let name { shard.extras?.pendingWrites?.refresh(name, at: wallClockTime()) }
      if let index = shard.keys.index(of: key, hash: hash) {
        details = shard[index].state.box
        refresh(index, ticket, &shard)
      }
      return ticket
    }
    live?.refresh()
    withExtendedLifetime(details) {}
    return ticket
  }

  /// Notes that every value has changed at its origin.
  func refreshAll() -> RefreshTicket {
    let ticket = drawTicket()
    outdateAllShared()
    var details: [EntryDetails.Box] = []
    var lives: [LiveFetching<Key, Value>] = []
    shards.withEachLock { shard in
      lives += shard.extras?.lives.entries.map(\.element.fetching) ?? []
      shard.extras?.pendingWrites?.refreshAll(at: wallClockTime())
      for index in shard.keys.entries.indices {
        if !shard[index].state.hasNoDetails { details.append(shard[index].state.box) }
        refresh(index, ticket, &shard)
      }
    }
    for live in lives { live.refresh() }
    withExtendedLifetime(details) {}
    return ticket
  }

  @inlinable
  func refresh(
    _ index: Int,
    _ ticket: RefreshTicket,
    _ shard: inout Shard<Key, Value>
  ) {
    guard shard[index].state.refresh(ticket, hasValue: shard.hasValue(index)) else { return }
    let flight = shard.makeFlight(
      index,
      source: source,
      priority: .current,
      predecessor: shard[index].state.running
    )
    shard[index].state.enqueue(flight)
  }

  // MARK: - Clearing

  /// Forgets a key, cuts its flights off, and removes its stored copy.
  ///
  /// - Throws: The reason why the copy may still be there.
  @inlinable
  func clear(_ key: Key, hash: UInt64) async throws {
    let name = storage?.name(of: key)
    invalidate(key, hash: hash, name: name)
    if let name { try await removeStored(named: [name]) }
  }

  /// Forgets a key and cuts its flights off.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - name: The name of the stored copy, which is not used any more, if there is a cacher.
  ///   - isSignedOut: Whether live subscriptions wait until the value is requested.
  @inlinable
  func invalidate(_ key: Key, hash: UInt64, name: String? = nil, isSignedOut: Bool = false) {
    var effects = makeEffects()
    // What is removed is released once the lock is.
    var removed: Shard<Key, Value>.Table.Entry?
    shards.withLock(hash: hash) { shard in
      // Also without an entry: states that subscribers have not read may hold a value.
      if shard.hasHubs { shard.publishReset(key, hash, &effects) }
      if let index = shard.keys.index(of: key, hash: hash) {
        invalidate(shard[index].state, &effects)
        removed = shard.remove(at: index)
        if shard.hasEdits { shard.sweepEdits(&effects) }
      }
      if let name { shard.extras?.pendingWrites?.remove(key, hash: hash, name: name, &effects) }
      if effects.tellsEvents {
        shard.note(key, &effects, in: self) {
          .removed(key: $0, cause: .cleared)
        }
      }
      shard.noteCleared(key, hash, isSignedOut: isSignedOut, &effects)
    }
    effects.perform(in: self)
    withExtendedLifetime(removed) {}
  }

  /// Cuts the flights of a key off; the caller removes its place and tells the subscribers.
  @inlinable
  func invalidate(_ state: EntryState, _ effects: inout Effects) {
    guard !state.isAtRest else { return }
    if policy.whenUnobserved == .cancel, let running = state.running, running.callerCount == 0 {
      effects.cancel(running)
    }
    // Callers that wait for a flight that has not begun get its outcome, which is stored nowhere.
    if let queued = state.queued, queued.callerCount > 0 { effects.launched.append(queued) }
  }

  /// Forgets everything, cuts all flights off, and removes all stored copies.
  ///
  /// - Throws: The reason why some copies may still be there.
  @usableFromInline
  func clear() async throws {
    invalidate()
    try await removeStored(named: nil)
  }

  /// Forgets everything, and cuts all flights off.
  @usableFromInline
  func invalidate() {
    invalidateAll(pauses: 0)
  }

  /// Forgets everything, and stores no result of work that starts before it is resumed.
  @usableFromInline
  func pause() {
    invalidateAll(pauses: 1)
  }

  private func invalidateAll(pauses: Int) {
    var effects = makeEffects()
    var removed: [ContiguousArray<Shard<Key, Value>.Table.Entry>] = []
    // One change for all shards: otherwise the removal of the stored copies could begin for the first shards, and
    // remove once more, for the last ones, what has been stored and flushed in the meantime.
    shards.withAllLocks { shard in
      shard.pauseCount += pauses
      for hub in shard.extras?.hubs.entries ?? [] {
        shard.publishReset(hub.key, hub.hash, &effects)
      }
      removed.append(shard.removeAll())
      shard.sweepEdits(&effects)
      shard.extras?.pendingWrites?.removeAll(&effects)
      shard.noteAllCleared(isSignedOut: pauses > 0, &effects)
    }
    for entry in removed.joined() { invalidate(entry.element.state, &effects) }
    effects.release(removed)
    effects.perform(in: self)
    tell(.removed(key: nil, cause: .cleared))
  }

  /// Stores the results of work that starts from now on.
  @usableFromInline
  func resume() {
    shards.withEachLock { $0.pauseCount -= 1 }
  }

  /// Forgets everything in memory; flights go on.
  @usableFromInline
  func clearMemory() {
    var effects = makeEffects()
    shards.withEachLock { shard in
      let index = shard.extras?.tagIndex
      let edits = shard.extras?.edits
      let old = shard.removeAll()
      let limit = shard.isBounded ? max(1024, 4 * old.count) : nil
      for entry in old {
        let tags = index?.tags(of: entry.key, hash: entry.hash)
        clearMemory(of: entry, edits, tags: tags, limit: limit, &shard, &effects)
      }
      shard.sweepEdits(&effects)
      effects.release(edits)
      effects.release(old)
      shard.noteAllCleared(isSignedOut: false, &effects)
    }
    effects.perform(in: self)
    tell(.removed(key: nil, cause: .memoryCleared))
  }

  /// Forgets the value of a key in memory; its flight goes on.
  @usableFromInline
  func clearMemory(_ key: Key, hash: UInt64) {
    var effects = makeEffects()
    shards.withLock(hash: hash) { shard in
      guard let index = shard.keys.index(of: key, hash: hash) else { return }
      if shard.hasValue(index), effects.tellsEvents {
        shard.note(key, &effects, in: self) { .removed(key: $0, cause: .memoryCleared) }
      }
      let tags = shard.extras?.tagIndex?.tags(of: key, hash: hash)
      let edits = shard.extras?.edits
      let old = shard.remove(at: index)
      let limit = shard.isBounded ? max(1024, 4 * shard.keys.count) : nil
      clearMemory(of: old, edits, tags: tags, limit: limit, &shard, &effects)
      shard.sweepEdits(&effects)
      effects.release((edits, old))
      shard.noteCleared(key, hash, &effects)
    }
    effects.perform(in: self)
  }

  /// Does the rest for an entry that was taken out: its value is written, and its flight stays.
  private func clearMemory(
    of entry: Shard<Key, Value>.Table.Entry,
    _ edits: KeyTable<Key, Shard<Key, Value>.Edits>?,
    tags: [CacheTag]?,
    limit: Int?,
    _ shard: inout Shard<Key, Value>,
    _ effects: inout Effects
  ) {
    let isAtRest = entry.element.state.isAtRest
    if let value = entry.element.value, shard.extras?.pendingWrites != nil {
      let base = edits.flatMap { Shard.base(of: entry.key, hash: entry.hash, in: $0) }
      let copy = ValueOutcome(base ?? value)
      entry.element.state.describe(copy)
      shard.extras?.pendingWrites?.depart(entry.key, hash: entry.hash, copy, limit: limit, &effects)
      if shard.extras?.pendingWrites?.hasDepartures == true { effects.callsCacher = true }
    }
    guard shard.hasHubs || !isAtRest else { return }
    shard.publish(.unknown, entry.key, entry.hash, &effects)
    guard !isAtRest else { return }
    var kept = CachedEntry<Value>()
    kept.state = entry.element.state
    kept.state.clearMemory()
    let index = shard.insert(kept, for: entry.key, hash: entry.hash, tags: tags)
    shard.publish(index, &effects)
  }
}
