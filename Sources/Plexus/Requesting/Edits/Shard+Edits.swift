// MARK: - New values

extension Shard {
  /// Returns the drafts to reapply to a value that has arrived, unless that has been done.
  @usableFromInline
  @inline(never)
  func missingDrafts(
    of key: Key,
    _ hash: UInt64,
    _ arrival: borrowing Arrival
  ) -> DraftsToReapply<Value>? {
    guard let extras, let way = arrival.way,
      let place = extras.edits.index(of: key, hash: hash)
    else { return nil }
    let drafts = extras.edits.entries[place].element.drafts(above: way)
    let ids = drafts.map(\.id)
    // Not by the version: updates that begin without a value leave it as it is.
    if ids.isEmpty || arrival.stack?.ids == ids { return nil }
    return DraftsToReapply(ids: ids, changes: drafts.map(\.change))
  }

  /// Puts the new value of an entry below the drafts of its key, so that they stay visible.
  ///
  /// - Parameters:
  ///   - way: The way in which it has arrived.
  ///   - arrival: What is known of it: its cost is replaced by that of the visible value, and the name of the key is set if
  ///     the confirmed value is another one.
  ///   - effects: Receives the work that remains.
  @usableFromInline
  @inline(never)
  mutating func putBelowDrafts(
    _ way: Edits.Way,
    _ arrival: inout Arrival,
    _ effects: inout CacheEffects
  ) {
    let entry = keys.entries[arrival.index]
    guard let extras, let value = entry.element.value,
      let place = extras.edits.index(of: entry.key, hash: entry.hash)
    else { return }
    // The drafts are those of the stack, or there are none.
    let top = extras.edits.entries[place].element.replace(
      with: Edits.Weighed(value, cost: arrival.cost),
      results: arrival.stack?.results ?? [],
      way
    )
    arrival.cost = top.value.cost ?? arrival.cost
    arrival.changesBase = top.changesBase
    if top.changesBase { arrival.name = arrival.name ?? arrival.stack?.name }
    effects.release(setValue(top.value.value, at: arrival.index))
    sweepEdits(&effects)
  }

  // MARK: - The states of updates

  /// Changes the updates of a key.
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

  /// Changes the updates of all keys.
  @inline(never)
  mutating func changeEdits(_ body: (inout Edits) -> Void) {
    guard let extras else { return }
    for index in extras.edits.entries.indices { body(&extras.edits.entries[index].element) }
  }

  /// Informs the updates of a value that it has left memory.
  @usableFromInline
  @inline(never)
  mutating func releaseEdits(of index: Int) {
    let entry = keys.entries[index]
    guard let extras, let place = extras.edits.index(of: entry.key, hash: entry.hash) else {
      return
    }
    extras.edits.entries[place].element.removeValue()
  }

  /// Informs the updates of a key that the key is cleared.
  @usableFromInline
  @inline(never)
  mutating func clearEdits(of key: Key, _ hash: UInt64, _ effects: inout CacheEffects) {
    if let extras, let place = extras.edits.index(of: key, hash: hash) {
      extras.edits.entries[place].element.clear()
    }
    sweepEdits(&effects)
  }

  /// Informs the updates of a value that its running fetch has ended, or is not used.
  @usableFromInline
  @inline(never)
  mutating func endFetch(_ index: Int, _ effects: inout CacheEffects) {
    let entry = keys.entries[index]
    if let extras, let place = extras.edits.index(of: entry.key, hash: entry.hash) {
      extras.edits.entries[place].element.endFetch()
    }
    sweepEdits(&effects)
  }

  /// Removes the states that no update needs anymore, and the objects that were replaced.
  @inline(never)
  mutating func sweepEdits(_ effects: inout CacheEffects) {
    guard let extras else { return }
    for index in extras.edits.entries.indices.reversed() {
      if extras.edits.entries[index].element.isEmpty {
        removeEdits(at: index, &effects)
      } else if let retired = extras.edits.entries[index].element.takeRetired() {
        effects.release(retired)
      }
    }
  }

  private mutating func removeEdits(at index: Int, _ effects: inout CacheEffects) {
    guard let removed = extras?.edits.remove(at: index) else { return }
    extras?.tagIndex?.removeFormer(removed.key, hash: removed.hash)
    effects.release(removed)
  }

  /// Records that an update has computed a value.
  ///
  /// - Returns: Whether the value in memory is still the one of that version.
  mutating func endEdit(
    of key: Key,
    hash: UInt64,
    _ version: UInt64,
    _ effects: inout CacheEffects
  ) -> Bool {
    guard let extras, let index = extras.edits.index(of: key, hash: hash) else { return false }
    let isCurrent = extras.edits.entries[index].element.end(version)
    if extras.edits.entries[index].element.isEmpty { removeEdits(at: index, &effects) }
    return isCurrent
  }

  // MARK: - Confirmed values

  /// Returns a copy of the confirmed value at an index, with its metadata.
  @usableFromInline
  func confirmedCopy(_ index: Int) -> ValueOutcome<Value>? {
    guard let base = base(of: keys.entries[index].key, hash: keys.entries[index].hash) else {
      return copy(index)
    }
    let copy = ValueOutcome(base)
    keys.entries[index].element.state.describe(copy)
    return copy
  }

  /// Returns the confirmed value of a key, if the one in memory is not confirmed.
  func base(of key: Key, hash: UInt64) -> Value? {
    extras.flatMap { Self.base(of: key, hash: hash, in: $0.edits) }
  }

  /// Returns the confirmed value of a key, if the one in memory is not confirmed.
  static func base(of key: Key, hash: UInt64, in edits: KeyTable<Key, Edits>) -> Value? {
    edits.index(of: key, hash: hash).flatMap { edits.entries[$0].element.base }
  }
}
