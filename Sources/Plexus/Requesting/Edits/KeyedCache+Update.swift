extension KeyedCache {
  /// Changes the value of a key without changing its age.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - body: Changes the value; it runs again if the value was replaced meanwhile.
  /// - Returns: The new value; `nil` if the key has no value.
  func update(
    _ key: Key,
    hash: UInt64,
    _ body: (inout Value) throws -> Void
  ) rethrows -> Value? {
    while let (value, version, basis) = beginUpdate(of: key, hash: hash) {
      var edit = Edit(value: value)
      do {
        if let basis { try apply(body, to: basis, &edit) } else { try body(&edit.value) }
      } catch {
        endUpdate(of: key, hash: hash, version)
        throw error
      }
      if finishUpdate(of: key, hash: hash, version, edit) { return edit.value }
    }
    return nil
  }

  /// Applies an update to the value in memory, and to the values of which that consists if some drafts fail.
  ///
  /// A value for which the update throws stays the same, unless it is the one in memory.
  func apply(
    _ body: (inout Value) throws -> Void,
    to basis: Shard<Key, Value>.Edits.Basis,
    _ edit: inout Edit
  ) rethrows {
    var values = basis.values
    if basis.absorbsDrafts {
      for draft in basis.drafts {
        var changed = values
        for index in changed.indices { draft.change(&changed[index]) }
        values = draft.isConfirmed ? changed : values + changed
      }
      values[values.count - 1] = edit.value
    }
    let last = values.count - 1
    try body(&values[last])
    for index in 0..<last {
      var value = values[index]
      do {
        try body(&value)
        values[index] = value
      } catch {}
    }
    edit.value = values[last]
    edit.values = values
    guard !basis.absorbsDrafts else { return }
    for draft in basis.drafts {
      draft.change(&edit.value)
      edit.results.append(edit.value)
    }
  }

  /// A change of a value in memory.
  struct Edit: Sendable {
    /// The value in memory after the change.
    var value: Value
    /// The optimistic change, if it is one.
    var draft: (id: UInt64, change: Shard<Key, Value>.Change, old: Value)?
    /// The confirmed values after the change, if there are drafts.
    var values: [Value] = []
    /// The results of the drafts that are not part of these.
    var results: [Value] = []

    init(
      value: Value,
      draft: (id: UInt64, change: Shard<Key, Value>.Change, old: Value)? = nil
    ) {
      self.value = value
      self.draft = draft
    }
  }

  /// Returns a copy of the value of a key, if there is one, the version of the copy, and the confirmed values below
  /// drafts.
  func beginUpdate(
    of key: Key,
    hash: UInt64
  ) -> (value: Value, version: UInt64, basis: Shard<Key, Value>.Edits.Basis?)? {
    shards.withLock(hash: hash) { shard in
      guard let value = shard.value(of: key, hash: hash) else { return nil }
      return shard.withEdits(of: key, hash: hash) { (value, $0.begin(), $0.basis) }
    }
  }

  /// Ends an update that has failed.
  func endUpdate(of key: Key, hash: UInt64, _ version: UInt64) {
    change(hash, at: .min) { shard, transaction in
      _ = shard.endEdit(of: key, hash: hash, version, &transaction.effects)
    }
  }

  /// Replaces the value that a new one was computed from.
  ///
  /// The result of an optimistic update is not written before it is confirmed.
  ///
  /// - Returns: Whether it was still the current value.
  func finishUpdate(
    of key: Key,
    hash: UInt64,
    _ version: UInt64,
    _ edit: Edit
  ) -> Bool {
    // These calls run user code.
    var arrival = Arrival(cost: cost(of: edit.value), name: storage?.name(of: key))
    if valueTags != nil {
      let base = edit.values.flatMap { tags(of: key, $0) }
      arrival.tags = .init(visible: tags(of: key, edit.value), base: base)
    }
    return change(hash, at: time.now()) { shard, transaction in
      guard shard.endEdit(of: key, hash: hash, version, &transaction.effects),
        let index = shard.keys.index(of: key, hash: hash)
      else { return false }
      if recentChanges != nil { noteChange(index, shard, &transaction) }
      let next = detachFlights(index, changingTo: edit.value, &shard, &transaction)
      arrival.index = index
      renewStart(of: index, arrival.name, &shard, &transaction.effects)
      shard.put(edit.value, &arrival, &transaction)
      if edit.draft != nil || shard.hasEdits {
        shard.record(edit, at: index, cost: arrival.cost)
        shard.sweepEdits(&transaction.effects)
      }
      shard.expireIdle(index, at: transaction.now)
      shard[index].state.update()
      if let next { shard[index].state.begin(next, inBackground: true) }
      arrival.next = next
      arrival.isNewest = next == nil && shard[index].state.unserved.isNone
      if edit.draft != nil { arrival.name = nil }
      transaction.effects.tell(of: key) { .stored(key: $0) }
      complete(arrival, &shard, &transaction)
      return true
    }
  }

  /// Detaches the flights of an entry whose value is changed, and answers the callers that do not require a newer one.
  ///
  /// The changed value is as old as before: it does not satisfy a refresh, and is no answer if the value was none. Callers
  /// that require a newer one get the outcome of the running flight, which is stored nowhere, or wait for the queued one.
  ///
  /// - Returns: The flight that begins now.
  func detachFlights(
    _ index: Int,
    changingTo value: Value,
    _ shard: inout Shard<Key, Value>,
    _ transaction: inout Transaction
  ) -> Flight? {
    let state = shard[index].state
    guard let running = state.running else { return nil }
    let isStale = state.isExpired(at: transaction.now)
    if !state.servesRefresh, !(isStale && state.forbidsStale) {
      let storedAt = state.storedAt
      answer([running], with: value, storedAt: storedAt, isStale: isStale, &transaction.effects)
    } else if running.callerCount == 0, isCancelled(withoutCallers: running) {
      transaction.effects.cancel(running)
    }
    if let queued = state.queued { return isQueuedFlightLeft(index, shard) ? nil : queued }
    // Live subscriptions still need the value that the refresh asks for.
    guard state.servesRefresh, shard.hasLives, shard.isLive(index) else { return nil }
    return shard.makeFlight(index, source: source, priority: .current)
  }
}

extension Shard {
  /// Records a change of the value at an index in the updates of its key.
  @inline(never)
  mutating func record(_ edit: KeyedCache<Key, Value>.Edit, at index: Int, cost: Int) {
    let (key, hash) = (keys.entries[index].key, keys.entries[index].hash)
    let new = Edits.Weighed(edit.value, cost: cost)
    if let (id, change, old) = edit.draft {
      let oldCost = extras?.eviction?.cost(at: index)
      withEdits(of: key, hash: hash) {
        $0.draft(id, change, of: Edits.Weighed(old, cost: oldCost ?? 1), result: new)
      }
      return
    }
    guard let extras, let place = extras.edits.index(of: key, hash: hash) else { return }
    var values = edit.values.map { Edits.Weighed($0) }
    var results = edit.results.map { Edits.Weighed($0) }
    if !results.isEmpty {
      results[results.count - 1] = new
    } else if !values.isEmpty {
      values[values.count - 1] = new
    }
    extras.edits.entries[place].element.change(to: values, results: results)
  }
}
