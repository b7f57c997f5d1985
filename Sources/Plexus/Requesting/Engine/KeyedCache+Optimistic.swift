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
      let result = try await commit()
      confirm(id, of: key, hash: hash)
      return result
    } catch {
      revert(id, of: key, hash: hash)
      throw error
    }
  }

  /// Changes the value, if there is one.
  @inlinable
  func draft(
    _ id: UInt64,
    _ change: @escaping Shard<Key, Value>.Change,
    of key: Key,
    hash: UInt64
  ) {
    while true {
      guard let (old, version) = beginUpdate(of: key, hash: hash) else {
        let isWithoutValue = shards.withLock(hash: hash) { shard in
          guard shard.value(of: key, hash: hash) == nil else { return false }
          shard.withEdits(of: key, hash: hash) { $0.beginWithoutValue(id) }
          return true
        }
        if isWithoutValue { return }
        continue
      }
      var value = old
      change(&value)
      if finishUpdate(of: key, hash: hash, version, with: value, draft: (id, change, old)) {
        return
      }
    }
  }

  /// Ends an optimistic update that has succeeded.
  @inlinable
  func confirm(_ id: UInt64, of key: Key, hash: UInt64) {
    let name = storage?.name(of: key)
    var effects = makeEffects()
    let refreshes = shards.withLock(hash: hash) { shard in
      let confirmation = shard.withEdits(of: key, hash: hash) { $0.confirm(id) }
      if confirmation == .changesBase {
        shard.noteBase(of: key, hash: hash, name: name, &effects)
      }
      shard.sweepEdits(&effects)
      // A fetch in flight began before the commit has ended: its value can lack the change.
      let isBeingFetched =
        shard.keys.index(of: key, hash: hash).map { !shard[$0].state.isAtRest } ?? false
      return confirmation == .refreshes || isBeingFetched
    }
    effects.perform(in: self)
    if refreshes { _ = refresh(key, hash: hash) }
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
      case .reapplies(var value, let changes, let version):
        var results: [Value] = []
        for change in changes {
          change(&value)
          results.append(value)
        }
        if remove(id, of: key, hash: hash, results, version, cost: cost(of: value)) { return }
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
    _ results: [Value],
    _ version: UInt64,
    cost: Int
  ) -> Bool {
    let name = storage?.name(of: key)
    var effects = makeEffects()
    var old: Value?
    var evicted = Shard<Key, Value>.Evicted()
    let isCurrent = shards.withLock(hash: hash) { shard in
      guard let index = shard.keys.index(of: key, hash: hash), shard.hasValue(index) else {
        return false
      }
      let rest = shard.withEdits(of: key, hash: hash) {
        $0.remove(id, results: results, version: version)
      }
      guard let rest else { return false }
      old = shard.setValue(rest.value, at: index, isEdit: true)
      if rest.changesBase {
        shard.noteBase(of: key, hash: hash, name: name, &effects)
      }
      shard.publish(index, &effects)
      if effects.tellsEvents { shard.note(key, &effects, in: self) { .stored(key: $0) } }
      shard.sweepEdits(&effects)
      shard.keep(index, cost: cost, &evicted, &effects, in: self)
      return true
    }
    effects.perform(in: self)
    withExtendedLifetime(old) {}
    withExtendedLifetime(evicted) {}
    return isCurrent
  }
}

extension Shard {
  /// Marks the confirmed value of a key as one that the cacher does not have.
  @inlinable
  mutating func noteBase(
    of key: Key,
    hash: UInt64,
    name: String?,
    _ effects: inout Effects
  ) {
    guard let index = keys.index(of: key, hash: hash) else { return }
    noteUnwritten(
      index,
      name: name,
      start: nil,
      isNewest: self[index].state.unserved.isNone,
      &effects
    )
  }
}
