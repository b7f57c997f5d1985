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
  @inlinable
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
  @inlinable
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
  @inlinable
  func confirm(_ id: UInt64, of key: Key, hash: UInt64) {
    let name = storage?.name(of: key)
    var effects = makeEffects()
    let refreshes = shards.withLock(hash: hash) { shard in
      let index = shard.keys.index(of: key, hash: hash)
      // Under the lock: an attempt that begins afterwards, of the same flight or another one, has the change.
      let number = noteConfirmation()
      let isBeingFetched = index.map { shard[$0].state.isFetching } ?? false
      let confirmation = shard.withEdits(of: key, hash: hash) {
        $0.confirm(id, duringFetch: isBeingFetched ? number : nil)
      }
      if confirmation.changesBase, let index {
        shard.noteBase(index, name: name, &effects)
      }
      shard.sweepEdits(&effects)
      // A fetch in flight began before the commit has ended: its value can lack the change.
      return confirmation.refreshes || index.map { !shard[$0].state.isAtRest } ?? false
    }
    effects.perform(in: self)
    if refreshes { refetch(key, hash: hash) }
  }

  /// Marks the value of a key as changed at its origin, and begins to fetch it if it is in memory.
  @usableFromInline
  func refetch(_ key: Key, hash: UInt64) {
    _ = refresh(key, hash: hash)
    let caller = Caller(nil, at: time.now())
    var effects = makeEffects()
    shards.withLock(hash: hash) { shard in
      guard shard.pauseCount == 0, let index = shard.keys.index(of: key, hash: hash),
        shard.hasValue(index), shard[index].state.isAtRest
      else { return }
      _ = begin(&shard, index, caller, .none, inBackground: true, &effects)
      shard[index].state.awaitRenewal(at: caller.now)
    }
    effects.perform(in: self)
  }

  /// Ends an optimistic update that has failed.
  @inlinable
  func revert(_ id: UInt64, of key: Key, hash: UInt64) {
    while true {
      var effects = makeEffects()
      let reversal = shards.withLock(hash: hash) { shard in
        let reversal = shard.withEdits(of: key, hash: hash) { $0.revert(id) }
        shard.sweepEdits(&effects)
        return reversal
      }
      effects.perform(in: self)
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
  @inlinable
  func remove(
    _ id: UInt64,
    of key: Key,
    hash: UInt64,
    _ below: Shard<Key, Value>.Edits.Weighed,
    _ results: [Shard<Key, Value>.Edits.Weighed],
    _ version: UInt64
  ) -> Bool {
    let name = storage?.name(of: key)
    let cost = (results.last ?? below).cost ?? 1
    var effects = makeEffects()
    var old: Value?
    var evicted = Shard<Key, Value>.Evicted()
    var refreshes = false
    let isCurrent = shards.withLock(hash: hash) { shard in
      guard let index = shard.keys.index(of: key, hash: hash), shard.hasValue(index) else {
        return false
      }
      let rest = shard.withEdits(of: key, hash: hash) {
        $0.remove(id, below: below, results: results, version: version)
      }
      guard let rest else {
        shard.sweepEdits(&effects)
        return false
      }
      refreshes = rest.refreshes
      old = shard.setValue(rest.value, at: index)
      if rest.changesBase { shard.noteBase(index, name: name, &effects) }
      shard.publish(index, &effects)
      if effects.tellsEvents { shard.note(key, &effects, in: self) { .stored(key: $0) } }
      shard.sweepEdits(&effects)
      shard.keep(index, cost: cost, &evicted, &effects, in: self)
      return true
    }
    effects.perform(in: self)
    withExtendedLifetime(old) {}
    withExtendedLifetime(evicted) {}
    if refreshes { _ = refresh(key, hash: hash) }
    return isCurrent
  }

  // MARK: - Reapplying

  /// Returns the results of changes to a value, the last one with its cost.
  @usableFromInline
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
  func stacked(_ drafts: DraftStack<Value>, on base: Value, cost: Int) -> DraftStack<Value> {
    DraftStack(
      ids: drafts.ids,
      changes: drafts.changes,
      base: .init(base, cost: cost),
      results: reapply(drafts.changes, to: base)
    )
  }
}

extension Shard {
  /// Marks the confirmed value of a key as one that the cacher does not have, and that the origin did not send.
  @inlinable
  mutating func noteBase(
    _ index: Int,
    name: String?,
    _ effects: inout Effects
  ) {
    self[index].state.removeValidator()
    noteUnwritten(
      index,
      name: name,
      start: nil,
      isNewest: self[index].state.unserved.isNone,
      &effects
    )
  }
}
