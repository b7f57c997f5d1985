extension KeyedCache {
  /// Stores a value that was not fetched by the cache.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - stack: The drafts that were reapplied to the value, if there are any.
  @inlinable
  func store(
    _ value: Value,
    for key: Key,
    hash: UInt64,
    below stack: DraftsToReapply<Value>? = nil
  ) {
    // A key that is not equal to itself, such as a NaN, would never be found again.
    guard key == key else { return }
    let lifetime = lifetime()
    // These calls run user code.
    let cost = stack?.base?.cost ?? cost(of: value)
    let name = storage?.name(of: key)
    let start = storage?.fetchStart
    let tags = tagging?(key)
    let valueTags = valueTags == nil ? nil : arrivalTags(of: value, key, below: stack)
    let missing = change(hash, at: time.now()) { shard, transaction -> DraftsToReapply<Value>? in
      var arrival = Arrival(below: stack, cost: cost, name: name)
      arrival.start = start
      arrival.tags = valueTags
      recentChanges?.change(key, hash: hash, &transaction.effects)
      if shard.hasEdits {
        arrival.way = .stored(by: OptimisticCommit.ids)
        if let missing = shard.missingDrafts(of: key, hash, arrival) { return missing }
      }
      let index = shard.place(of: key, hash: hash, tags: tags)
      if !shard[index].state.isAtRest {
        let flights = [shard[index].state.running, shard[index].state.queued].compactMap { $0 }
        answer(flights, with: value, storedAt: transaction.now, &transaction.effects)
      }
      arrival.index = index
      shard.put(value, &arrival, &transaction)
      shard[index].state.store(lifetime, at: transaction.now)
      transaction.effects.tell(of: key) { .stored(key: $0) }
      complete(arrival, &shard, &transaction)
      return nil
    }
    guard let missing else { return }
    store(value, for: key, hash: hash, below: stacked(missing, on: value, cost: cost, of: key))
  }

  /// Answers the callers of flights with a value that was stored.
  @usableFromInline
  @inline(never)
  func answer(
    _ flights: [Flight],
    with value: Value,
    storedAt: Nanoseconds,
    isStale: Bool = false,
    _ effects: inout CacheEffects
  ) {
    let outcome = ValueOutcome(value)
    outcome.source = .memory
    outcome.storedAt = storedAt
    outcome.isStale = isStale
    for flight in flights {
      if let predecessor = flight.settle() { effects.release(object: predecessor) }
      effects.answer(flight, with: outcome)
      if isCancelled(withoutCallers: flight) { effects.cancel(flight) }
    }
  }

  /// Marks the value of a key as changed at its origin.
  @inlinable
  func refresh(_ key: Key, hash: UInt64) -> RefreshTicket {
    let name = storage?.name(of: key)
    let time = name.flatMap { outdate($0) }
    var live: LiveFetching<Key, Value>?
    let ticket = change(hash, at: .min) { shard, transaction in
      let ticket = drawTicket()
      recentChanges?.change(key, hash: hash, &transaction.effects)
      live = shard.live(key, hash)
      if let name, let time { shard.extras?.pendingWrites?.refresh(name, at: time) }
      if let index = shard.keys.index(of: key, hash: hash) {
        transaction.details = shard[index].state.box
        refresh(index, ticket, &shard)
      }
      return ticket
    }
    live?.refresh()
    return ticket
  }

  /// Records outside of memory that a value has changed at its origin.
  ///
  /// - Returns: The time up to which stored copies are outdated; `nil` if a shared tier records it.
  @usableFromInline
  func outdate(_ name: String) -> Duration? {
    guard let shared else { return note([.refreshedKey(name)]) }
    shared.withDebts { $0.outdates.owe([name]) }
    sendChanges()
    return nil
  }

  /// Records outside of memory that all values have changed at their origin.
  ///
  /// - Returns: The time up to which stored copies are outdated; `nil` if a shared tier records it.
  func outdateAll() -> Duration? {
    guard let shared else { return storage.flatMap { note([$0.completeRefresh]) } }
    let names = shared.knownKeys.map(\.name)
    let now = time.now()
    shared.withDebts { debts in
      debts.outdates.owe(names)
      debts.goAhead(at: now)
    }
    sendChanges()
    return nil
  }

  /// Marks every value as changed at its origin.
  func refreshAll() -> RefreshTicket {
    let ticket = drawTicket()
    recentChanges?.changeAll()
    let time = outdateAll()
    var details: [EntryState.Details.Box] = []
    var lives: [LiveFetching<Key, Value>] = []
    shards.withEachLock { shard in
      if shard.hasLives { lives += shard.allLives }
      if let time { shard.extras?.pendingWrites?.refreshAll(at: time) }
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

  /// Removes a key and its stored copy, and detaches its flights.
  ///
  /// - Throws: The error because of which the copy can remain.
  @inlinable
  func clear(_ key: Key, hash: UInt64) async throws {
    let name = storage?.name(of: key)
    invalidate(key, hash: hash, name: name)
    if let name { try await removeStored(named: [name]) }
  }

  /// Removes a key and detaches its flights.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - name: The name of the stored copy, which is no longer used, if there is a cacher.
  ///   - isSignedOut: Whether live subscriptions wait until the value is requested.
  @inlinable
  func invalidate(_ key: Key, hash: UInt64, name: String? = nil, isSignedOut: Bool = false) {
    change(hash, at: .min) { shard, transaction in
      recentChanges?.change(key, hash: hash, &transaction.effects)
      if shard.hasEdits { shard.clearEdits(of: key, hash, &transaction.effects) }
      // Also without an entry: unread states of subscribers can hold a value.
      if shard.hasHubs { shard.publishReset(key, hash, &transaction.effects) }
      if let index = shard.keys.index(of: key, hash: hash) {
        invalidate(shard[index].state, &transaction.effects)
        transaction.release(shard.remove(at: index))
      }
      if let name {
        shard.extras?.pendingWrites?.remove(key, hash: hash, name: name, &transaction.effects)
      }
      transaction.effects.tell(of: key) { .removed(key: $0, cause: .cleared) }
      shard.notifyCleared(key, hash, isSignedOut: isSignedOut, &transaction.effects)
    }
  }

  /// Detaches the flights of a key; the caller removes its entry and publishes the state.
  @inlinable
  func invalidate(_ state: EntryState, _ effects: inout CacheEffects) {
    guard !state.isAtRest else { return }
    if let running = state.running, running.callerCount == 0,
      isCancelled(withoutCallers: running)
    {
      effects.cancel(running)
    }
    // Callers that wait for a flight that has not begun get its outcome, which is stored nowhere.
    if let queued = state.queued, queued.callerCount > 0 { effects.launched.append(queued) }
  }

  /// Removes all values and all stored copies, and detaches all flights.
  ///
  /// - Throws: The error because of which copies can remain.
  func clear() async throws {
    invalidate()
    if storage != nil { try await removeStored(named: nil) }
  }

  /// Removes all values and detaches all flights.
  @usableFromInline
  func invalidate() {
    invalidateAll(pauses: 0)
  }

  /// Removes all values, and stores no result of work that starts before ``resume()``.
  @usableFromInline
  func pause() {
    invalidateAll(pauses: 1)
  }

  func invalidateAll(pauses: Int) {
    var effects = makeEffects()
    var removed: [ContiguousArray<Shard<Key, Value>.Table.Entry>] = []
    // One change for all shards: otherwise the removal of the stored copies could begin for the first shards, and
    // remove once more, for the last ones, what has been stored and flushed in the meantime.
    shards.withAllLocks { shard in
      recentChanges?.changeAll(&effects)
      shard.pauseCount += pauses
      if shard.hasHubs { shard.publishResets(&effects) }
      if shard.hasEdits {
        shard.changeEdits { $0.clear() }
        shard.sweepEdits(&effects)
      }
      removed.append(shard.removeAll())
      shard.extras?.pendingWrites?.removeAll(&effects)
      if shard.hasLives { shard.notifyAllCleared(isSignedOut: pauses > 0, &effects) }
    }
    for entry in removed.joined() { invalidate(entry.element.state, &effects) }
    effects.perform(in: self)
    tell(.removed(key: nil, cause: .cleared))
  }

  /// Resumes storing the results of work that starts after this call.
  @usableFromInline
  func resume() {
    var effects = makeEffects()
    shards.withAllLocks { shard in
      recentChanges?.changeAll(&effects)
      shard.pauseCount -= 1
    }
    effects.perform(in: self)
  }

  /// Removes all values from memory; flights continue.
  @usableFromInline
  func clearMemory() {
    var effects = makeEffects()
    shards.withEachLock { shard in
      let index = shard.extras?.tagIndex
      let changed = shard.hasEdits ? shard.extras?.edits : nil
      let old = shard.removeAll()
      let limit = shard.isBounded ? max(1024, 4 * old.count) : nil
      for entry in old {
        let tags = index?.tags(of: entry.key, hash: entry.hash)
        clearMemory(of: entry, changed, tags: tags, limit: limit, &shard, &effects)
      }
      if changed != nil { shard.sweepEdits(&effects) }
      if changed != nil || !old.isEmpty { effects.release((changed, old)) }
      if shard.hasLives { shard.notifyAllCleared(isSignedOut: false, &effects) }
    }
    effects.perform(in: self)
    tell(.removed(key: nil, cause: .memoryCleared))
  }

  /// Removes the value of a key from memory; its flight continues.
  func clearMemory(_ key: Key, hash: UInt64) {
    var effects = makeEffects()
    shards.withLock(hash: hash) { shard in
      guard let index = shard.keys.index(of: key, hash: hash) else { return }
      if shard.hasValue(index) {
        effects.tell(of: key) { .removed(key: $0, cause: .memoryCleared) }
      }
      let tags = shard.extras?.tagIndex?.tags(of: key, hash: hash)
      let edits = shard.extras?.edits
      let old = shard.remove(at: index)
      let limit = shard.isBounded ? max(1024, 4 * shard.keys.count) : nil
      clearMemory(of: old, edits, tags: tags, limit: limit, &shard, &effects)
      shard.sweepEdits(&effects)
      effects.release((edits, old))
      shard.notifyCleared(key, hash, &effects)
    }
    effects.perform(in: self)
  }

  /// Completes the removal of an entry from memory: its value is written, and its flight stays.
  func clearMemory(
    of entry: Shard<Key, Value>.Table.Entry,
    _ edits: KeyTable<Key, Shard<Key, Value>.Edits>?,
    tags: [CacheTag]?,
    limit: Int?,
    _ shard: inout Shard<Key, Value>,
    _ effects: inout CacheEffects
  ) {
    let isAtRest = entry.element.state.isAtRest
    if let value = entry.element.value, shard.extras?.pendingWrites != nil {
      let base = edits.flatMap { Shard.base(of: entry.key, hash: entry.hash, in: $0) }
      let copy = ValueOutcome(base ?? value)
      entry.element.state.describe(copy)
      shard.depart(entry.key, entry.hash, copy, limit: limit, &effects)
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
