extension KeyedCache {
  /// The number of keys with a value.
  var count: Int {
    var count = 0
    shards.withEachLock { count += $0.valueCount }
    return count
  }

  /// The keys with a value, in no particular order.
  var keys: [Key] {
    var keys: [Key] = []
    shards.withEachLock { shard in
      keys.reserveCapacity(keys.count + shard.valueCount)
      for entry in shard.keys.entries where entry.element.value != nil { keys.append(entry.key) }
    }
    return keys
  }

  /// Returns the keys with a value or a fetch that satisfy a condition, which is not called under a lock.
  func knownKeys(where isWanted: (Key) -> Bool) -> [Key] {
    var keys: [Key] = []
    shards.withEachLock { shard in
      for entry in shard.keys.entries { keys.append(entry.key) }
    }
    return keys.filter(isWanted)
  }

  /// Fetches in the background the values of keys that are neither fresh nor in flight.
  func prefetch(_ keys: some Sequence<Key>) {
    var effects = makeEffects()
    let caller = Caller(nil, isBulk: bulkFetch != nil, at: time.now()).inBackground
    for key in keys { prefetch(key, hash: hasher.hash(key), caller, &effects) }
    effects.perform(in: self)
  }

  /// Fetches the value of a key in the background, if it is neither fresh nor in flight.
  func prefetch(_ key: Key, hash: UInt64) {
    var effects = makeEffects()
    let caller = Caller(nil, isBulk: bulkFetch != nil, at: time.now()).inBackground
    prefetch(key, hash: hash, caller, &effects)
    effects.perform(in: self)
  }

  func prefetch(_ key: Key, hash: UInt64, _ caller: Caller, _ effects: inout CacheEffects) {
    let now = caller.now
    let tags = tagging?(key)
    shards.withLock(hash: hash) { shard in
      let index = shard.place(of: key, hash: hash, tags: tags)
      if shard.hasValue(index) { shard.expireIdle(index, at: now) }
      switch shard[index].state.decide(
        hasValue: shard.hasValue(index),
        at: now,
        staleTime: staleTime,
        refreshAhead: refreshAhead
      ) {
      case .begins, .expiring, .stale(renews: true):
        guard source.limit?.isCrowded != true else {
          return shard.removeIfEmpty(index, &effects)
        }
        let flight = begin(index, caller, &shard, &effects)
        flight.plan.remembersFailure = false
      case .fresh, .stale(renews: false), .failure, .waits, .refused:
        shard.removeIfEmpty(index, &effects)
      }
    }
  }

  /// Marks the values of some keys as changed at their origin.
  func refresh(_ keys: some Sequence<Key>) -> RefreshTicket {
    var ticket: RefreshTicket?
    for key in keys { ticket = refresh(key, hash: hasher.hash(key)) }
    // Without a key, the reference still requires the refreshes before.
    return ticket ?? drawTicket()
  }

  /// Marks the values of the known keys that satisfy a condition as changed at their origin.
  func refresh(where isWanted: (Key) -> Bool) -> RefreshTicket {
    // Which unknown keys satisfy the condition is not known later.
    recentChanges?.changeAll()
    return refresh(knownKeys(where: isWanted))
  }

  /// Removes some keys and their stored copies, and detaches their flights.
  ///
  /// - Throws: The error because of which copies can remain.
  func clear(_ keys: some Sequence<Key> & Sendable) async throws {
    var names: Set<String> = []
    for key in keys {
      let name = storage?.name(of: key)
      invalidate(key, hash: hasher.hash(key), name: name)
      if let name { names.insert(name) }
    }
    if !names.isEmpty { try await removeStored(named: names) }
  }

  /// Removes the known keys that satisfy a condition, and their stored copies.
  ///
  /// - Throws: The error because of which copies can remain.
  func clear(where isWanted: (Key) -> Bool) async throws {
    recentChanges?.changeAll()
    try await clear(knownKeys(where: isWanted))
  }
}
