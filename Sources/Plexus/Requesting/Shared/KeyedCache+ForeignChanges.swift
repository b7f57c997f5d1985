/// The changes of other processes, and their effects on the values in memory.
extension KeyedCache {
  /// Listens to the changes of other processes until the cache is released.
  @usableFromInline
  func listen() {
    shared?.cacher.observeChanges { [weak self] change in self?.note(change) }
  }

  private func note(_ change: SharedCache.Change) {
    guard let shared else { return }
    switch change {
    case .changed(let names):
      let (keys, settled) = shared.note(changesOf: names)
      for (key, hash) in keys { distrust(key, hash: hash, detaching: settled) }
    case .leased(let names):
      let (keys, settled) = shared.note(changesOf: names, ofLeases: true)
      for (key, hash) in keys {
        distrust(key, hash: hash, detaching: settled, marksValue: false)
      }
    case .tagged(let tags):
      let keys = keys(of: tags)
      var names = Set(keys.compactMap { storage?.name(of: $0.key) })
      // A detached flight has no entry by which its key is found. `tagging` is user code.
      for (name, key) in shared.watchedKeys
      where !names.contains(name) && tagging.map({ !tags.isDisjoint(with: $0(key)) }) ?? false {
        names.insert(name)
      }
      let (_, settled) = shared.note(changesOf: names)
      for (key, hash) in keys { distrust(key, hash: hash, detaching: settled) }
    case .everything:
      contestAll()
      if shared.trust.generation == shared.seenGeneration { distrustAll() } else { _ = isTrusted() }
      shared.noteGap()
      // The engine can be reachable again.
      sendChanges()
    case .interrupted:
      contestAll()
      shared.noteInterruption()
    }
  }

  /// Records that other processes can have changed every key since its unwritten value was stored.
  private func contestAll() {
    shards.withEachLock { $0.extras?.pendingWrites?.contestAll() }
  }

  /// Marks the value of a key: it is used again once it has been looked up, and written if its key has not changed.
  ///
  /// Flights that fetch or have their answer are detached: a request that begins after the change would get a value from
  /// before it. A flight that looks repeats its look.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - settled: The flights that no longer look.
  ///   - marksValue: Whether the value is marked if no flight is detached.
  func distrust(
    _ key: Key,
    hash: UInt64,
    detaching settled: Set<ObjectIdentifier> = [],
    marksValue: Bool = true
  ) {
    let name = storage?.name(of: key)
    let live = change(hash, at: .min) { shard, transaction -> LiveFetching<Key, Value>? in
      shard.extras?.pendingWrites?.contest(key, hash: hash, name: name)
      let live = shard.live(key, hash)
      guard let index = shard.keys.index(of: key, hash: hash) else { return live }
      if let running = shard[index].state.running, settled.contains(ObjectIdentifier(running)) {
        distrust(index, &shard, &transaction.effects)
        return live
      }
      guard marksValue else { return nil }
      markValue(of: key, hash: hash, in: &shard)
      return live
    }
    live?.confirm()
  }

  /// Marks the value of a key, if there is one.
  private func markValue(of key: Key, hash: UInt64, in shard: inout Shard<Key, Value>) {
    guard let index = shard.keys.index(of: key, hash: hash), shard.hasValue(index) else { return }
    shard[index].state.distrust()
  }

  /// Marks the value of a key if the engine was not heard for so long that it is no answer, not even as a fallback.
  func distrustIfExpired(_ key: Key, hash: UInt64) {
    guard let shared, shared.trust.hasExpired else { return }
    let now = time.now()
    shards.withLock(hash: hash) { shard in
      guard let index = shard.keys.index(of: key, hash: hash), shard.hasValue(index),
        !shared.trust.keepsCopy(from: shard[index].state.storedAt, at: now)
      else { return }
      shard[index].state.distrust()
    }
  }

  /// Marks all values, and detaches all flights: their results are only for their current callers.
  func distrustAll() {
    distrust(where: nil)
  }

  /// Detaches all flights: they began while the engine was heard, and a clear no longer waits for this process.
  ///
  /// Otherwise, a request that begins after the clear would get the result of a look or fetch from before it.
  func detachFlights() {
    let now = time.now()
    distrust { [self] shard, index in
      let state = shard[index].state
      let isKept = shard.hasValue(index) && keepsCopy(from: state.storedAt, at: now)
      return !state.isAtRest && !isKept
    }
  }

  /// Marks the values of the entries that satisfy a condition, or of all, and detaches their flights.
  private func distrust(where isConcerned: ((Shard<Key, Value>, Int) -> Bool)?) {
    var effects = makeEffects()
    var lives: [LiveFetching<Key, Value>] = []
    shards.withEachLock { shard in
      if isConcerned == nil { lives += shard.allLives }
      // From the end, because a removal moves the last entry.
      for index in shard.keys.entries.indices.reversed() {
        if let isConcerned {
          guard isConcerned(shard, index) else { continue }
          let entry = shard.keys.entries[index]
          if let live = shard.live(entry.key, entry.hash) { lives.append(live) }
        }
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
    _ effects: inout CacheEffects
  ) {
    let state = shard[index].state
    if state.isAtRest {
      if shard.hasValue(index) { shard[index].state.distrust() }
      return
    }
    invalidate(state, &effects)
    effects.release(state)
    shard[index].state.cutOff(hasValue: shard.hasValue(index))
    if shard.hasEdits { shard.endFetch(index, &effects) }
    shard.publish(index, &effects)
    shard.removeIfEmpty(index, &effects)
  }

  /// Returns whether a flight is no longer the one of its key.
  func isDetached(_ flight: Flight) -> Bool {
    let key = key(of: flight)
    return shards.withLock(hash: flight.hash) { shard in
      shard.keys.index(of: key, hash: flight.hash).map { shard[$0].state.running !== flight }
        ?? true
    }
  }

  /// Returns the answer of a detached flight: for a failure, the fallback that the tier still has, if it is allowed.
  @usableFromInline
  @inline(never)
  func detachedAnswer(_ outcome: Outcome, at now: Nanoseconds) -> Outcome {
    guard shared != nil, let failure = outcome.failure, let stored = failure.stored,
      stored.allowsFallback(failure.grounds, at: now)
    else { return outcome }
    return stale(stored, from: .cacher, because: outcome.error)
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
    guard let shared, shared.end(flight) else { return }
    let key = key(of: flight)
    shards.withLock(hash: flight.hash) { markValue(of: key, hash: flight.hash, in: &$0) }
  }

  // MARK: - Values that the tier does not confirm

  /// Removes the value of a key that the tier does not confirm, so that it is not a fallback for a failed fetch.
  ///
  /// A fresh value that is renewed early stays: whether there is a renewal makes no difference to requests.
  func dropUnconfirmed(_ flight: Flight, isRemoved: Bool) {
    change(flight.hash, at: time.now()) { shard, transaction in
      guard let index = shard.keys.index(of: key(of: flight), hash: flight.hash),
        shard[index].state.running === flight, shard.hasValue(index),
        isRemoved
          && (shard[index].state.isExpired(at: transaction.now) || shard[index].state.servesRefresh)
          || shard[index].state.isDistrusted
      else { return }
      shard.dropValue(index, &transaction.effects)
    }
  }

  // MARK: - The keys whose changes are observed

  /// Observes the changes of keys whose values are about to be stored: changes of other processes reach the copies in
  /// memory.
  func watchStored(_ keys: [(name: String, key: Key)]) {
    guard let shared else { return }
    let isCrowded = shared.note(stored: keys.map { ($0.name, ($0.key, hasher.hash($0.key))) })
    if isCrowded { forgetAbsentKeys() }
  }

  /// Removes the records of keys that have no entry.
  func forgetAbsentKeys() {
    guard let shared else { return }
    shared.forget(
      shared.knownKeys.compactMap { name, known in
        let isNeeded = shards.withLock(hash: known.hash) { shard in
          shard.keys.index(of: known.key, hash: known.hash) != nil
            || shard.extras?.pendingWrites?.departures[name] != nil
        }
        return isNeeded ? nil : name
      }
    )
  }
}
