extension KeyedCache {
  /// Changes the value of a key at once, and reverts the change if the commit fails.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - change: A closure that changes the value.
  ///   - commit: A closure that makes the change at the origin of the value.
  /// - Returns: The result of the commit.
  /// - Throws: The error of the commit.
  func update<Result: Sendable>(
    _ key: Key,
    hash: UInt64,
    optimistically change: @escaping Shard<Key, Value>.Change,
    commit: @concurrent @Sendable () async throws -> Result
  ) async throws -> Result {
    // No value of a key that is not equal to itself is ever found again.
    guard key == key else { return try await commit() }
    let id = UniqueID.next()
    draft(id, change, of: key, hash: hash)
    do {
      let result = try await OptimisticCommit.local.withValue(OptimisticCommit.ids + [id]) {
        try await commit()
      }
      confirm(id, of: key, hash: hash)
      return result
    } catch {
      revert(id, of: key, hash: hash)
      throw error
    }
  }

  /// Changes the value, or the first one that arrives before the commit has ended.
  func draft(
    _ id: UInt64,
    _ change: @escaping Shard<Key, Value>.Change,
    of key: Key,
    hash: UInt64
  ) {
    while true {
      guard let (old, version, _) = beginUpdate(of: key, hash: hash) else {
        let isWithoutValue = shards.withLock(hash: hash) { shard in
          guard shard.value(of: key, hash: hash) == nil else { return false }
          shard.withEdits(of: key, hash: hash) { $0.beginWithoutValue(id, change) }
          return true
        }
        if isWithoutValue { return }
        continue
      }
      var value = old
      change(&value)
      let edit = Edit(value: value, draft: (id, change, old))
      if finishUpdate(of: key, hash: hash, version, edit) { return }
    }
  }

  /// Ends an optimistic update that has succeeded.
  func confirm(_ id: UInt64, of key: Key, hash: UInt64) {
    var arrival = Arrival(cost: 0, name: storage?.name(of: key))
    let refreshes = change(hash, at: .min) { shard, transaction in
      recentChanges?.change(key, hash: hash, &transaction.effects)
      let index = shard.keys.index(of: key, hash: hash)
      // Under the lock: an attempt that begins afterwards, of the same flight or another one, has the change.
      let number = countConfirmation()
      let isBeingFetched = index.map { shard[$0].state.isFetching } ?? false
      let confirmation = shard.withEdits(of: key, hash: hash) {
        $0.confirm(id, duringFetch: isBeingFetched ? number : nil)
      }
      if confirmation.changesBase, let index {
        shard[index].state.removeValidator()
        arrival.index = index
        arrival.isNewest = shard[index].state.unserved.isNone
        shard.recordUnwritten(arrival, &transaction.effects)
      }
      shard.sweepEdits(&transaction.effects)
      // A fetch in flight began before the commit has ended: its value can lack the change.
      return confirmation.refreshes || index.map { !shard[$0].state.isAtRest } ?? false
    }
    if refreshes { refetch(key, hash: hash) }
  }

  /// Marks the value of a key as changed at its origin, and begins to fetch it if it is in memory.
  func refetch(_ key: Key, hash: UInt64) {
    _ = refresh(key, hash: hash)
    let caller = Caller(nil, at: time.now())
    change(hash, at: caller.now) { shard, transaction in
      guard shard.pauseCount == 0, let index = shard.keys.index(of: key, hash: hash),
        shard.hasValue(index), shard[index].state.isAtRest
      else { return }
      _ = begin(index, caller.inBackground, &shard, &transaction.effects)
      shard[index].state.awaitRenewal(at: caller.now)
    }
  }

  /// Ends an optimistic update that has failed.
  func revert(_ id: UInt64, of key: Key, hash: UInt64) {
    while true {
      let reversal = change(hash, at: .min) { shard, transaction in
        recentChanges?.change(key, hash: hash, &transaction.effects)
        let reversal = shard.withEdits(of: key, hash: hash) { $0.revert(id) }
        shard.sweepEdits(&transaction.effects)
        return reversal
      }
      switch reversal {
      case .nothing:
        return
      case .refreshes:
        _ = refresh(key, hash: hash)
        return
      case .reapplies(var below, let changes, let version):
        let results = reapply(changes, to: below.value)
        if results.isEmpty, below.cost == nil { below.cost = cost(of: below.value) }
        if remove(id, of: key, hash: hash, below, results, version) { return }
      }
    }
  }

  /// Replaces the value with the one that results without a draft.
  ///
  /// - Returns: Whether the value is still the one of that version.
  func remove(
    _ id: UInt64,
    of key: Key,
    hash: UInt64,
    _ below: Shard<Key, Value>.Edits.Weighed,
    _ results: [Shard<Key, Value>.Edits.Weighed],
    _ version: UInt64
  ) -> Bool {
    var arrival = Arrival(cost: (results.last ?? below).cost ?? 1, name: storage?.name(of: key))
    if valueTags != nil {
      arrival.tags = arrivalTags(of: (results.last ?? below).value, key)
    }
    var refreshes = false
    let isCurrent = change(hash, at: time.now()) { shard, transaction in
      guard let index = shard.keys.index(of: key, hash: hash), shard.hasValue(index) else {
        return false
      }
      let rest = shard.withEdits(of: key, hash: hash) {
        $0.remove(id, below: below, results: results, version: version)
      }
      guard let rest else {
        shard.sweepEdits(&transaction.effects)
        return false
      }
      refreshes = rest.refreshes
      arrival.index = index
      shard.put(rest.value, &arrival, &transaction)
      if rest.changesBase { shard[index].state.removeValidator() }
      shard.sweepEdits(&transaction.effects)
      arrival.isUsed = false
      arrival.isNewest = shard[index].state.unserved.isNone
      if !rest.changesBase { arrival.name = nil }
      transaction.effects.tell(of: key) { .stored(key: $0) }
      complete(arrival, &shard, &transaction)
      return true
    }
    if refreshes { _ = refresh(key, hash: hash) }
    return isCurrent
  }

  // MARK: - Reapplying

  /// Returns the results of changes to a value, the last one with its cost.
  func reapply(
    _ changes: [Shard<Key, Value>.Change],
    to value: Value
  ) -> [Shard<Key, Value>.Edits.Weighed] {
    var value = value
    var results: [Shard<Key, Value>.Edits.Weighed] = []
    for change in changes {
      change(&value)
      results.append(.init(value))
    }
    if !results.isEmpty { results[results.count - 1].cost = cost(of: value) }
    return results
  }

  /// Reapplies drafts to a new value.
  @usableFromInline
  func stacked(
    _ drafts: DraftsToReapply<Value>,
    on base: Value,
    cost: Int,
    of key: Key
  ) -> DraftsToReapply<Value> {
    DraftsToReapply(
      ids: drafts.ids,
      changes: drafts.changes,
      base: .init(base, cost: cost),
      name: storage?.name(of: key),
      results: reapply(drafts.changes, to: base)
    )
  }
}
