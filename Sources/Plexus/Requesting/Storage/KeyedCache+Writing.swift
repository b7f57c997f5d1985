extension KeyedCache {
  /// Writes the values that the cacher does not have.
  ///
  /// - Throws: A ``CacherError`` with the names of failed writes and removals, or the error of a complete removal.
  @usableFromInline
  func flush() async throws {
    guard let storage else { return }
    let report = await turn(of: storage, flushing: true, erases: true)
    if !report.failedWrites.isEmpty { storage.noteFailure(in: self) }
    var failures = storage.takeLosses()
    failures.merge(report.failedRemovals) { _, newer in newer }
    failures.merge(report.failedWrites) { _, newer in newer }
    if !failures.isEmpty { throw CacherError(failures: failures) }
    if let error = report.completeRemovalError ?? report.recordError { throw error }
  }

  /// Writes the values that the cacher does not have, and returns whether that succeeded.
  ///
  /// Values that have left memory and could not be written are reported by the next flush.
  func writeBehind(_ storage: Storage<Key, Value>) async -> Bool {
    let report = await turn(of: storage, flushing: true)
    let isComplete = report.failedWrites.isEmpty && report.hasRemoved && report.recordError == nil
    if !isComplete { storage.noteFailure(in: self) }
    return isComplete
  }

  /// Removes the stored copies that are to be removed.
  ///
  /// - Parameters:
  ///   - names: The names whose failures are thrown; `nil` for all.
  ///   - tags: Whether values were cleared by tag, which other instances have to see.
  /// - Throws: The error because of which some copies can remain.
  @usableFromInline
  func removeStored(named names: Set<String>?, byTag tags: Bool = false) async throws {
    guard let storage else { return }
    let report = await turn(of: storage, flushing: false)
    if let error = report.completeRemovalError { throw error }
    if tags, let error = report.recordError { throw error }
    let failures =
      names.map { names in report.failedRemovals.filter { names.contains($0.key) } }
      ?? report.failedRemovals
    if !failures.isEmpty { throw CacherError(failures: failures) }
  }

  private func turn(
    of storage: Storage<Key, Value>,
    flushing: Bool,
    erases: Bool = false
  ) async -> StorageReport {
    let report = Locked(StorageReport())
    let turn = storage.queue.add { [self] in
      var result = await synchronize(storage, flushing: flushing)
      if erases {
        do {
          try await storage.erase(isComplete: false)
        } catch {
          result.recordError = error
          noteCacherError([:], error)
        }
      }
      let complete = result
      report.withLock { $0 = complete }
    }
    // A turn that the cacher itself requests would wait for itself.
    if !storage.queue.isCurrent { await turn.value }
    return report.withLock { $0 }
  }

  /// Performs the pending removals, and then writes the values that have left memory.
  ///
  /// When flushing, the values in memory that the cacher does not have are written, too. Called in the queue of
  /// the storage.
  func synchronize(
    _ storage: Storage<Key, Value>,
    flushing: Bool
  ) async -> StorageReport {
    var report = StorageReport()
    // Before the removals: a value that is stored while copies are removed can have to wait for the next write.
    if flushing { storage.beginFlush() }
    do {
      try await storage.writeMarks()
    } catch {
      report.recordError = error
      noteCacherError([:], error)
    }
    // A copy that is cleared during a removal would otherwise be removed after its replacement has been
    // written. The limit stops a cacher that clears at every removal.
    for _ in 0..<8 where report.hasRemoved {
      guard await removeCopies(storage, &report) else { break }
    }
    let (items, blocked) = unwritten(flushing: flushing)
    noteOverflow(storage)
    for item in blocked {
      // A value written now would later be removed together with the older copy.
      guard let error = report.completeRemovalError ?? report.failedRemovals[item.name] else {
        continue
      }
      if flushing { report.failedWrites[item.name] = error }
      if item.key == nil { lose(item, error, storage) }
    }
    if !items.isEmpty { await write(items, to: storage, &report) }
    return report
  }

  /// Performs the removals that are pending now.
  ///
  /// - Returns: Whether there were any.
  private func removeCopies(
    _ storage: Storage<Key, Value>,
    _ report: inout StorageReport
  ) async -> Bool {
    var names: [(name: String, revision: UInt64)] = []
    var isComplete = false
    var revisions: [UInt64?] = []
    // A complete removal is seen in all shards or in none.
    shards.withAllLocks { shard in
      revisions.append(shard.extras?.pendingWrites?.completeRemoval)
      if shard.extras?.pendingWrites?.completeRemoval != nil { isComplete = true }
      for (name, revision) in shard.extras?.pendingWrites?.removals ?? [:] {
        names.append((name, revision))
      }
    }
    if isComplete {
      do {
        try await storage.remove(count: 1) { [self] in
          try await remove(from: storage) { try await storage.removeAllEntries() }
        }
        try await storage.erase(isComplete: true)
        var remaining = revisions[...]
        shards.withEachLock { shard in
          if let revision = remaining.popFirst() ?? nil {
            shard.extras?.pendingWrites?.confirmCompleteRemoval(revision)
          }
        }
      } catch {
        report.completeRemovalError = error
        noteCacherError([:], error)
      }
      return true
    }
    guard !names.isEmpty else { return false }
    do {
      let keys = Set(names.map(\.name))
      try await storage.remove(count: keys.count) { [self] in
        try await remove(from: storage) { try await storage.cacher.removeEntries(forKeys: keys) }
      }
      storage.noteRemains()
      // The only entry is all that there is of this cache.
      if storage.onlyName != nil { try await storage.erase(isComplete: true) }
    } catch {
      report.failedRemovals = failures(in: error, of: names.map(\.name))
      noteCacherError(report.failedRemovals)
    }
    let removed = names.filter { report.failedRemovals[$0.name] == nil }
    shards.withEachLock { shard in shard.extras?.pendingWrites?.confirmRemoval(of: removed) }
    return true
  }

  /// Removes entries from the cacher.
  ///
  /// - Throws: The error of the cacher; ``MultiplexerError/storageTimedOut(after:)`` if it takes too long, or if
  ///   an abandoned write can still bring back removed entries, which are then removed again.
  private func remove(
    from storage: Storage<Key, Value>,
    _ operation: @escaping @concurrent @Sendable () async throws -> Void
  ) async throws {
    try await storage.calls.run(.removal, onLateReturn: retry(in: storage), operation)
    if storage.calls.hasUnreturnedWrites { throw storage.calls.timeoutError }
  }

  /// Returns the closure to call when an abandoned call returns.
  private func retry(in storage: Storage<Key, Value>) -> @Sendable () -> Void {
    { [self] in storage.scheduleWriting(in: self) }
  }

  /// A value that the cacher does not have.
  private struct Unwritten: Sendable {
    let name: String
    let revision: UInt64
    let entry: CacheEntry<Value>
    let subject: Key
    /// The order of the start of its fetch.
    let order: UInt64
    /// The key and its hash, if it is in memory.
    let key: (key: Key, hash: UInt64)?
  }

  /// Returns the values to write, and the values that cannot be written because an older copy has to be removed first.
  private func unwritten(flushing: Bool) -> (items: [Unwritten], blocked: [Unwritten]) {
    var items: [Unwritten] = []
    var blocked: [Unwritten] = []
    let wallTime = wallClockTime()
    let now = time.now()
    let present = storage?.generation
    shards.withEachLock { shard in
      guard let pendingWrites = shard.extras?.pendingWrites else { return }
      func add(
        _ name: String,
        _ revision: UInt64,
        _ copy: ValueOutcome<Value>,
        _ start: FetchStart,
        _ subject: Key,
        _ key: (key: Key, hash: UInt64)?
      ) {
        var entry = CacheEntry(
          copy,
          age: .nanoseconds(age(of: copy.storedAt, at: now)),
          at: wallTime
        )
        entry.generation = storage?.generation(after: start, at: present)
        entry.usableTime = usableTime(copy.terms)
        let item = Unwritten(
          name: name,
          revision: revision,
          entry: entry,
          subject: subject,
          order: start.order,
          key: key
        )
        if pendingWrites.isToBeRemoved(name) { return blocked.append(item) }
        items.append(item)
        shard.extras?.pendingWrites?.noteWrite(at: entry.storedAt)
        // By its time of storage the entry can look newer than the refresh that it does not satisfy.
        if pendingWrites.isOutdated(name, revision: revision) {
          shard.extras?.pendingWrites?.outdate(name, until: entry.storedAt)
        }
      }
      for (name, departure) in pendingWrites.departures {
        add(name, departure.revision, departure.copy, departure.start, departure.key, nil)
      }
      guard flushing else { return }
      for entry in pendingWrites.dirty.entries {
        guard let index = shard.keys.index(of: entry.key, hash: entry.hash),
          let copy = shard.confirmedCopy(index)
        else { continue }
        let note = entry.element
        let key = (entry.key, entry.hash)
        add(note.name, note.revision, copy, note.start, entry.key, key)
      }
    }
    return (items, blocked)
  }

  /// Records the values that were dropped because too many others waited to be written.
  private func noteOverflow(_ storage: Storage<Key, Value>) {
    var names: Set<String> = []
    shards.withEachLock { shard in
      if shard.extras?.pendingWrites?.overflow.isEmpty == false {
        names.formUnion(shard.extras?.pendingWrites?.takeOverflow() ?? [])
      }
    }
    for name in names { storage.noteLoss(name, MultiplexerError.storageOverloaded) }
  }

  private func write(
    _ items: [Unwritten],
    to storage: Storage<Key, Value>,
    _ report: inout StorageReport
  ) async {
    var entries: [String: CacheEntry<Value>] = [:]
    for item in items {
      var entry = item.entry
      // User code, called without a lock.
      entry.tags = tagging?(item.subject) ?? []
      // A value that was cleared by tag since its fetch began is omitted, as a cacher omits one that was removed.
      let isWritten =
        link != nil
        || storage.ledger.admit(&entry.storedAt, item.name, entry.tags, since: item.order)
      if isWritten { entries[item.name] = entry }
    }
    if let link { noteStored(items.map { ($0.name, $0.subject) }, link) }
    var failures: [String: any Error] = [:]
    do {
      // An abandoned call could still replace or remove the entries.
      if storage.calls.hasUnreturnedChanges { throw storage.calls.timeoutError }
      if !entries.isEmpty {
        let entries = entries
        try await storage.calls.run(.write, onLateReturn: retry(in: storage)) {
          try await storage.cacher.store(entries)
        }
      }
    } catch {
      failures = self.failures(in: error, of: Array(entries.keys))
      noteCacherError(failures)
    }
    report.failedWrites.merge(failures) { _, newer in newer }
    storage.forgetLosses(entries.keys.lazy.filter { failures[$0] == nil })
    if entries.count > failures.count { tell(.flushed(count: entries.count - failures.count)) }
    for item in items {
      if let error = failures[item.name] {
        if item.key == nil { lose(item, error, storage) }
        continue
      }
      var effects = makeEffects()
      if let (key, hash) = item.key {
        shards.withLock(hash: hash) {
          $0.extras?.pendingWrites?.confirm(key, hash: hash, revision: item.revision, &effects)
        }
      } else {
        // The value is in one of the shards; there are few of them, and few such values.
        shards.withEachLock {
          $0.extras?.pendingWrites?.endDeparture(item.name, revision: item.revision, &effects)
        }
      }
    }
  }

  /// Drops a value that has left memory and cannot be written, unless it is in memory again.
  private func lose(_ item: Unwritten, _ error: any Error, _ storage: Storage<Key, Value>) {
    let time = wallClockTime()
    var effects = makeEffects()
    var isLost = false
    shards.withEachLock { shard in
      if let departure = shard.extras?.pendingWrites?.departures[item.name],
        departure.revision == item.revision,
        let index = shard.keys.index(of: departure.key, hash: departure.hash),
        shard.hasValue(index)
      {
        // A newer value would have replaced the departure: this one is in memory again.
        shard.extras?.pendingWrites?.reclaim(item.name, departure, &effects)
        return
      }
      let wasThere = shard.extras?.pendingWrites?.loseDeparture(
        item.name,
        revision: item.revision,
        at: time,
        &effects
      )
      if wasThere == true { isLost = true }
    }
    if isLost { storage.noteLoss(item.name, error) }
  }

  /// Returns the errors of a cacher by name.
  func failures(in error: any Error, of names: [String]) -> [String: any Error] {
    var failures: [String: any Error] = [:]
    if let error = error as? CacherError {
      for name in names { failures[name] = error.failures[name] }
    }
    // An error that names none of them is about all of them.
    if failures.isEmpty { for name in names { failures[name] = error } }
    return failures
  }

  /// Counts the failures of a cacher, and sends them to the listeners.
  func noteCacherError(_ failures: [String: any Error], _ error: (any Error)? = nil) {
    shards.withLock(hash: 0) { $0.statistics.cacherErrors += max(1, failures.count) }
    for (name, error) in failures { tell(.cacherFailed(key: name, error: error)) }
    if let error { tell(.cacherFailed(key: nil, error: error)) }
  }
}
