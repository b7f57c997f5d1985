/// Removals and writes together, in the queue of the storage.
struct StorageSynchronization<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  let cache: KeyedCache<Key, Value>
  let storage: StoredLayer<Key, Value>
  private(set) var report = CacheEngine.StorageReport()

  init(cache: KeyedCache<Key, Value>, storage: StoredLayer<Key, Value>) {
    self.cache = cache
    self.storage = storage
  }

  /// Writes the marks, performs the pending removals, and then writes the values that have left memory.
  ///
  /// - Parameter flushing: Whether the values in memory that the cacher does not have are written, too.
  mutating func run(flushing: Bool) async {
    // Before the removals: a value that is stored while copies are removed can have to wait for the next write.
    if flushing { storage.writeBehind?.beginFlush() }
    await writeMarks()
    // A copy that is cleared during a removal would otherwise be removed after its replacement has been
    // written. The limit stops a cacher that clears at every removal.
    for _ in 0..<8 where report.hasRemoved {
      guard await removeCopies() else { break }
    }
    let pending = pending(flushing: flushing)
    takeOverflow()
    for item in pending.blocked {
      // A value written now would later be removed together with the older copy.
      guard let error = report.completeRemovalError ?? report.failedRemovals[item.name] else {
        continue
      }
      if flushing { report.failedWrites[item.name] = error }
      if item.hash == nil { lose(item, error) }
    }
    guard !pending.items.isEmpty else { return }
    // Of the values that were stored since, some are newer than marks that were noted since.
    await writeMarks()
    await write(pending.items)
  }

  private mutating func writeMarks() async {
    do {
      try await storage.writeMarks()
    } catch {
      report.recordError = error
      cache.reportCacherFailures([:], error)
    }
  }

  // MARK: - Removals

  /// Performs the removals that are pending now.
  ///
  /// - Returns: Whether there were any.
  private mutating func removeCopies() async -> Bool {
    var names: [(name: String, revision: UInt64)] = []
    var revisions: [UInt64?] = []
    // A complete removal is seen in all shards or in none.
    cache.shards.withAllLocks { shard in
      revisions.append(shard.extras?.pendingWrites?.completeRemoval)
      for (name, revision) in shard.extras?.pendingWrites?.removals ?? [:] {
        names.append((name, revision))
      }
    }
    if revisions.contains(where: { $0 != nil }) {
      await removeAllCopies(revisions)
    } else if !names.isEmpty {
      await removeCopies(names)
    } else {
      return false
    }
    return true
  }

  private mutating func removeAllCopies(_ revisions: [UInt64?]) async {
    do {
      try await remove(count: 1) { [storage] in try await storage.removeAllEntries() }
      cache.shared?.noteOwnRemoval()
      try await storage.erase(isComplete: true)
    } catch {
      report.completeRemovalError = error
      cache.reportCacherFailures([:], error)
      guard storage.takesAsDone(error) else { return }
    }
    var remaining = revisions[...]
    cache.shards.withEachLock { shard in
      if let revision = remaining.popFirst() ?? nil {
        shard.extras?.pendingWrites?.confirmCompleteRemoval(revision)
      }
    }
  }

  private mutating func removeCopies(_ names: [(name: String, revision: UInt64)]) async {
    do {
      let keys = Set(names.map(\.name))
      try await remove(count: keys.count) { [storage] in
        try await storage.cacher.removeEntries(forKeys: keys)
      }
      cache.shared?.noteOwnChanges(ofLeases: keys)
      storage.recordRemains()
      // The only entry is all that there is of this cache.
      if storage.onlyName != nil { try await storage.erase(isComplete: true) }
    } catch {
      report.failedRemovals = cache.failures(in: error, of: names.map(\.name))
      cache.reportCacherFailures(report.failedRemovals)
    }
    let removed = names.filter {
      report.failedRemovals[$0.name].map(storage.takesAsDone) ?? true
    }
    cache.shards.withEachLock { shard in shard.extras?.pendingWrites?.confirmRemoval(of: removed) }
  }

  /// Removes entries from the cacher.
  ///
  /// - Parameters:
  ///   - count: The number of removals that the cacher counts.
  ///   - operation: The removal.
  /// - Throws: The error of the cacher; ``MultiplexerError/storageTimedOut(after:)`` if it takes too long, or if
  ///   an abandoned write can still bring back removed entries, which are then removed again.
  private func remove(
    count: Int,
    _ operation: @escaping @concurrent @Sendable () async throws -> Void
  ) async throws {
    try await storage.remove(count: count) { [cache, storage] in
      try await storage.calls.run(.removal, onLateReturn: cache.scheduleWriting, operation)
      if storage.calls.hasUnreturnedWrites { throw storage.calls.timeoutError }
    }
  }

  // MARK: - Unwritten values

  /// A value that the cacher does not have.
  struct Unwritten: Sendable {
    let note: PendingWrites<Key, Value>.Note
    let key: Key
    /// The hash of the key, if the value is in memory.
    var hash: UInt64?
    let entry: CacheEntry<Value>

    var name: String { note.name }
  }

  /// The values to write, and the values that cannot be written because an older copy has to be removed first.
  private struct Pending: Sendable {
    var items: [Unwritten] = []
    var blocked: [Unwritten] = []
  }

  /// The point in time at which values are taken out to be written.
  private struct Moment: Sendable {
    let now: Nanoseconds
    let wallTime = wallClockTime()
    let generation: CacheGeneration?
  }

  private func pending(flushing: Bool) -> Pending {
    var pending = Pending()
    let moment = Moment(now: cache.time.now(), generation: storage.generation)
    cache.shards.withEachLock { shard in
      guard let writes = shard.extras?.pendingWrites else { return }
      for departure in writes.departures.values {
        let entry = entry(departure.copy, departure.note.start, at: moment)
        add(Unwritten(note: departure.note, key: departure.key, entry: entry), &pending, &shard)
      }
      guard flushing else { return }
      for dirty in writes.dirty.entries {
        guard let index = shard.keys.index(of: dirty.key, hash: dirty.hash),
          let copy = shard.confirmedCopy(index)
        else { continue }
        let entry = entry(copy, dirty.element.start, at: moment)
        let item = Unwritten(note: dirty.element, key: dirty.key, hash: dirty.hash, entry: entry)
        add(item, &pending, &shard)
      }
    }
    return pending
  }

  private func entry(
    _ copy: ValueOutcome<Value>,
    _ start: FetchStart,
    at moment: Moment
  ) -> CacheEntry<Value> {
    let age = cache.age(of: copy.storedAt, at: moment.now)
    var entry = CacheEntry(copy, age: .nanoseconds(age), at: moment.wallTime)
    entry.generation = storage.generation(after: start, at: moment.generation)
    entry.usableTime = cache.usableTime(copy.terms)
    return entry
  }

  private func add(
    _ item: Unwritten,
    _ pending: inout Pending,
    _ shard: inout Shard<Key, Value>
  ) {
    guard let writes = shard.extras?.pendingWrites else { return }
    if writes.isToBeRemoved(item.name) { return pending.blocked.append(item) }
    pending.items.append(item)
    shard.extras?.pendingWrites?.noteWrite(at: item.entry.storedAt)
    // By its time of storage the entry can look newer than the refresh that it does not satisfy.
    if writes.isOutdated(item.name, revision: item.note.revision) {
      shard.extras?.pendingWrites?.outdate(item.name, until: item.entry.storedAt)
    }
  }

  /// Records the values that were dropped because too many others waited to be written.
  private func takeOverflow() {
    var names: Set<String> = []
    cache.shards.withEachLock { shard in
      if shard.extras?.pendingWrites?.overflow.isEmpty == false {
        names.formUnion(shard.extras?.pendingWrites?.takeOverflow() ?? [])
      }
    }
    for name in names { storage.recordLoss(name, MultiplexerError.storageOverloaded) }
  }

  // MARK: - Writes

  private mutating func write(_ items: [Unwritten]) async {
    var entries: [String: CacheEntry<Value>] = [:]
    var omitted: [Unwritten] = []
    let present = storage.recordsMarks ? storage.generation : nil
    for item in items {
      var entry = item.entry
      let storedAt = entry.storedAt
      entry.generation = storage.generation(
        entry.generation,
        pastMarksBefore: item.note.start,
        at: present
      )
      // User code, called without a lock.
      entry.tags = cache.tags(of: item.key, entry.value)
      // A value that was cleared by tag since its fetch began is omitted, as a cacher omits one that was removed.
      let isWritten =
        cache.shared != nil
        || storage.ledger.marks.withLock {
          $0.adjust(&entry.storedAt, item.name, entry.tags, since: item.note.start.order)
        }
      keepDeadline(of: &entry, storedBefore: storedAt)
      if isWritten { entries[item.name] = entry } else { omitted.append(item) }
    }
    var results = Results()
    if let shared = cache.shared {
      results = await store(&entries, of: items, in: shared)
    } else {
      results.failures = await store(entries)
    }
    let failures = results.failures
    cache.reportCacherFailures(failures)
    report.failedWrites.merge(failures) { _, newer in newer }
    let written = entries.keys.filter { failures[$0] == nil && !results.overtaken.contains($0) }
    storage.forgetLosses(written)
    if !written.isEmpty { cache.tell(.flushed(count: written.count)) }
    for item in items {
      if results.overtaken.contains(item.name) {
        giveUp(item)
      } else {
        end(item, failures[item.name])
      }
    }
    await payOutdates(because: results.overtaken)
    await removeCopies(before: omitted)
  }

  /// Keeps an entry from being fresh for longer because its time of storage comes after a clear.
  private func keepDeadline(of entry: inout CacheEntry<Value>, storedBefore time: Duration) {
    let delay = entry.storedAt - time
    // Shorter ones come from the resolution of the clock.
    guard delay > .milliseconds(1) else { return }
    let lifetime = cache.lifetime(ValueTerms(entry.directives)).duration
    entry.timeToLive = max(.zero, .nanoseconds(lifetime) - delay)
  }

  /// Removes the copies of former values of keys whose new values were cleared.
  private mutating func removeCopies(before omitted: [Unwritten]) async {
    var isToBeRemoved = false
    for item in omitted {
      let hash = item.hash ?? cache.hasher.hash(item.key)
      cache.shards.withLock(hash: hash) { shard in
        let isNew = shard.extras?.pendingWrites?.removeCopy(item.key, hash: hash, name: item.name)
        if isNew == true { isToBeRemoved = true }
      }
    }
    if isToBeRemoved { _ = await removeCopies() }
  }

  /// Stores entries.
  ///
  /// - Returns: The failures by name.
  func store(_ entries: [String: CacheEntry<Value>]) async -> [String: any Error] {
    do {
      // An abandoned call could still replace or remove the entries.
      if storage.calls.hasUnreturnedChanges { throw storage.calls.timeoutError }
      if !entries.isEmpty {
        try await storage.calls.run(.write, onLateReturn: cache.scheduleWriting) {
          [storage] in try await storage.cacher.store(entries)
        }
        cache.shared?.noteOwnChanges(ofLeases: entries.keys)
      }
      return [:]
    } catch {
      return cache.failures(in: error, of: Array(entries.keys))
    }
  }

  /// Pays the refreshes of keys whose values were not stored.
  private mutating func payOutdates(because overtaken: Set<String>) async {
    guard !overtaken.isEmpty, let shared = cache.shared else { return }
    do {
      try await storage.calls.run(.write) { try await shared.payOutdates() }
    } catch {
      report.recordError = error
    }
  }

  /// Ends the write of a value.
  func end(_ item: Unwritten, _ error: (any Error)?) {
    if let error {
      if cache.shared != nil { contest(item) }
      if item.hash == nil { lose(item, error) }
    } else {
      remove(item)
    }
  }

  /// Removes the note of a value, unless there is a newer one.
  func remove(_ item: Unwritten) {
    var effects = cache.makeEffects()
    let (name, revision) = (item.name, item.note.revision)
    if let hash = item.hash {
      cache.shards.withLock(hash: hash) {
        $0.extras?.pendingWrites?.confirm(item.key, hash: hash, revision: revision, &effects)
      }
    } else {
      // The value is in one of the shards; there are few of them, and few such values.
      cache.shards.withEachLock {
        $0.extras?.pendingWrites?.endDeparture(name, revision: revision, &effects)
      }
    }
  }

  /// Drops a value that has left memory and cannot be written, unless it is in memory again.
  private func lose(_ item: Unwritten, _ error: any Error) {
    let time = wallClockTime()
    var effects = cache.makeEffects()
    var isLost = false
    let (name, revision) = (item.name, item.note.revision)
    cache.shards.withEachLock { shard in
      if let departure = shard.extras?.pendingWrites?.departures[name],
        departure.note.revision == revision,
        let index = shard.keys.index(of: departure.key, hash: departure.hash),
        shard.hasValue(index)
      {
        // A newer value would have replaced the departure: this one is in memory again.
        shard.extras?.pendingWrites?.reclaim(departure, &effects)
        return
      }
      let wasThere = shard.extras?.pendingWrites?.loseDeparture(
        name,
        revision: revision,
        at: time,
        &effects
      )
      if wasThere == true { isLost = true }
    }
    if isLost { storage.recordLoss(name, error) }
  }
}

extension CacheEngine {
  /// The result of removals and writes.
  ///
  /// It is not nested in ``StorageSynchronization``, whose types of keys and values it does not depend on.
  struct StorageReport: Sendable {
    /// The error of the removal of all copies, if there is one.
    var completeRemovalError: (any Error)?
    /// The error because of which refreshes or clears by tag are not recorded, or bytes of removed entries remain.
    var recordError: (any Error)?
    /// The copies that could not be removed.
    var failedRemovals: [String: any Error] = [:]
    /// The values that could not be written.
    var failedWrites: [String: any Error] = [:]

    /// Whether everything could be removed that was to be.
    var hasRemoved: Bool { completeRemovalError == nil && failedRemovals.isEmpty }
  }
}
