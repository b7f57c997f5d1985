extension KeyedCache {
  /// Changes the value of a key without changing its age.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - body: Changes the value; it runs again if the value was replaced meanwhile.
  /// - Returns: The new value; `nil` if the key has no value.
  @inlinable
  func update(
    _ key: Key,
    hash: UInt64,
    _ body: (inout Value) throws -> Void
  ) rethrows -> Value? {
    while let (value, version) = beginUpdate(of: key, hash: hash) {
      var value = value
      do {
        try body(&value)
      } catch {
        endUpdate(of: key, hash: hash, version)
        throw error
      }
      if finishUpdate(of: key, hash: hash, version, with: value) { return value }
    }
    return nil
  }

  /// Returns a copy of the value of a key, if there is one, and the version of the copy.
  @inlinable
  func beginUpdate(of key: Key, hash: UInt64) -> (value: Value, version: UInt64)? {
    shards.withLock(hash: hash) { shard in
      guard let value = shard.value(of: key, hash: hash) else { return nil }
      return (value, shard.beginEdit(of: key, hash: hash))
    }
  }

  /// Ends an update that has failed.
  @inlinable
  func endUpdate(of key: Key, hash: UInt64, _ version: UInt64) {
    var effects = makeEffects()
    shards.withLock(hash: hash) { shard in
      _ = shard.endEdit(of: key, hash: hash, version, &effects)
    }
    effects.perform(in: self)
  }

  /// Replaces the value that a new one was computed from.
  ///
  /// The result of an optimistic update is not written before it is confirmed.
  ///
  /// - Returns: Whether it was still the current value.
  @inlinable
  func finishUpdate(
    of key: Key,
    hash: UInt64,
    _ version: UInt64,
    with value: Value,
    draft: (id: UInt64, change: Shard<Key, Value>.Change, old: Value)? = nil
  ) -> Bool {
    let now = time.now()
    // These calls run user code.
    let cost = cost(of: value)
    let name = storage?.name(of: key)
    var effects = makeEffects()
    var old: Value?
    var details: EntryState.Details.Box?
    var evicted = Shard<Key, Value>.Evicted()
    let isCurrent = shards.withLock(hash: hash) { shard in
      guard shard.endEdit(of: key, hash: hash, version, &effects),
        let index = shard.keys.index(of: key, hash: hash)
      else { return false }
      let storedAt = shard[index].state.storedAt
      if !shard[index].state.isAtRest {
        settle(index, with: value, storedAt: storedAt, &shard, &effects)
      }
      details = shard[index].state.box
      old = shard.setValue(value, at: index, isEdit: true)
      if let draft {
        shard.withEdits(of: key, hash: hash) {
          $0.draft(draft.id, draft.change, of: draft.old, result: value)
        }
      } else if shard.hasEdits {
        shard.overlayEdits(of: key, hash: hash, value)
      }
      shard.expireIdle(index, at: now)
      shard[index].state.update()
      shard.extras?.idleTimes?.renew(index, at: now)
      shard.publish(index, &effects)
      // Above a draft, the change is written when the draft is confirmed.
      if shard.base(of: key, hash: hash) == nil {
        shard.noteUnwritten(
          index,
          name: name,
          start: nil,
          isNewest: shard[index].state.unserved.isNone,
          &effects
        )
      }
      if effects.tellsEvents { shard.note(key, &effects, in: self) { .stored(key: $0) } }
      shard.keep(index, cost: cost, &evicted, &effects, in: self)
      return true
    }
    effects.perform(in: self)
    withExtendedLifetime((old, details)) {}
    withExtendedLifetime(evicted) {}
    return isCurrent
  }
}

extension Shard {
  /// Records that an update takes a copy of the value of a key, and returns its version.
  @inlinable
  mutating func beginEdit(of key: Key, hash: UInt64) -> UInt64 {
    withEdits(of: key, hash: hash) { $0.begin() }
  }

  /// Changes the updates of a key.
  @inlinable
  mutating func withEdits<Result>(
    of key: Key,
    hash: UInt64,
    _ body: (inout Edits) -> Result
  ) -> Result {
    let extras = makeExtras()
    let index =
      extras.edits.index(of: key, hash: hash)
      ?? extras.edits.insert(Edits(), for: key, hash: hash)
    return body(&extras.edits.entries[index].element)
  }

  /// Informs the other updates of a key that one has changed the value.
  @inlinable
  mutating func overlayEdits(of key: Key, hash: UInt64, _ value: Value) {
    guard let extras, let index = extras.edits.index(of: key, hash: hash) else { return }
    extras.edits.entries[index].element.overlay(value)
  }

  /// Informs the updates of an entry that a value was stored, which is newer than all of them.
  @inlinable
  mutating func replaceEdits(_ index: Int, _ effects: inout Effects) {
    let entry = keys.entries[index]
    if let extras, let place = extras.edits.index(of: entry.key, hash: entry.hash) {
      extras.edits.entries[place].element.replace()
    }
    sweepEdits(&effects)
  }

  /// Records that an update has computed a value.
  ///
  /// - Returns: Whether the value in memory is still the one of that version.
  @inlinable
  mutating func endEdit(
    of key: Key,
    hash: UInt64,
    _ version: UInt64,
    _ effects: inout Effects
  ) -> Bool {
    guard let extras, let index = extras.edits.index(of: key, hash: hash) else { return false }
    let isCurrent = extras.edits.entries[index].element.end(version)
    if extras.edits.entries[index].element.isEmpty {
      effects.release(extras.edits.remove(at: index))
    }
    return isCurrent
  }
}
