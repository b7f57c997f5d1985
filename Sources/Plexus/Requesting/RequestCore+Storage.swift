// MARK: - Reading

/// A stored copy as it was found.
struct FoundCopy<Value: Sendable>: Sendable {
  var copy: StoredCopy<Value>
  /// Until when it is fresh; in the past if it is not.
  var deadline: Nanoseconds
  /// Whether the value has changed at its origin since, so that it may only stand in for another one.
  var isOutdated = false
}

extension RequestCore {
  /// Reads the stored copy of a key.
  ///
  /// - Returns: The copy, or `nil` if there is none that may be used. A cacher that fails has none.
  func storedCopy(of key: Key, hash: UInt64) async -> FoundCopy<Value>? {
    guard let storage else { return nil }
    let name = storage.name(of: key)
    let lookup = stripes.withLock(hash: hash) { $0.ledger?.lookUp(name) }
    switch lookup {
    case .departing(let copy):
      return FoundCopy(copy: copy, deadline: deadline(of: copy))
    case .removed, nil:
      return nil
    case .elsewhere(let outdatedUntil):
      do {
        guard let entry = try await storage.cacher.entry(forKey: name) else { return nil }
        return found(entry, outdatedUntil: outdatedUntil)
      } catch {
        if !(error is CancellationError && Task.isCancelled) { noteCacherError([name: error]) }
        return nil
      }
    }
  }

  private func found(
    _ entry: CacheEntry<Value>,
    outdatedUntil: Duration?
  ) -> FoundCopy<Value> {
    let age = wallClockTime() - entry.storedAt
    let isFromTheFuture = age < .zero
    let now = time.now()
    let copy = StoredCopy(
      value: entry.value,
      validator: entry.validator,
      storedAt: isFromTheFuture ? now : now.addingSaturating(-Nanoseconds(saturating: age)),
      ownTimeToLive: entry.timeToLive.map { Nanoseconds(saturating: $0) }
    )
    return FoundCopy(
      copy: copy,
      // Whoever sets a clock back does not make values fresh for ever.
      deadline: isFromTheFuture ? now : deadline(of: copy),
      isOutdated: outdatedUntil.map { entry.storedAt <= $0 } ?? false
    )
  }

  private func deadline(of copy: StoredCopy<Value>) -> Nanoseconds {
    copy.storedAt.addingSaturating(max(lifetime(own: copy.ownTimeToLive).duration, 0))
  }
}

// MARK: - Writing and removing

extension RequestCore {
  /// Writes what the cacher does not have.
  ///
  /// - Throws: A ``CacherError`` that names what could not be written or removed.
  @usableFromInline
  func flush() async throws {
    guard let storage else { return }
    let report = await turn(of: storage, flushing: true)
    var failures = storage.takeLosses()
    failures.merge(report.failedRemovals) { _, newer in newer }
    failures.merge(report.failedWrites) { _, newer in newer }
    if !failures.isEmpty { throw CacherError(failures: failures) }
    if let error = report.completeRemovalError { throw error }
  }

  /// Removes the stored copies that are to be removed.
  ///
  /// - Parameter name: The one that the caller wants to be sure of; all of them if there is none.
  /// - Throws: Why it may still be there.
  func removeStored(_ name: String?) async throws {
    guard let storage else { return }
    let report = await turn(of: storage, flushing: false)
    if let error = report.completeRemovalError { throw error }
    guard let name else { return }
    if let error = report.failedRemovals[name] { throw CacherError(failures: [name: error]) }
  }

  private func turn(of storage: Storage<Key, Value>, flushing: Bool) async -> StorageReport {
    let report = Locked(StorageReport())
    let turn = storage.lane.add { [self] in
      let result = await synchronize(storage, flushing: flushing)
      report.withLock { $0 = result }
    }
    // A cacher that calls for its own multiplexer's turn would wait for itself.
    if !storage.lane.isCurrent { await turn.value }
    return report.withLock { $0 }
  }

  /// Removes what is to be removed, and then writes what has left memory.
  ///
  /// When flushing, everything else that the cacher does not have is written, too. Called in the lane of the
  /// storage.
  func synchronize(_ storage: Storage<Key, Value>, flushing: Bool) async -> StorageReport {
    var report = StorageReport()
    await removeCopies(storage, &report)
    // What is written now would be removed together with the rest later.
    if let error = report.completeRemovalError {
      if flushing {
        for item in unwritten(flushing: true) { report.failedWrites[item.name] = error }
      }
      return report
    }
    let items = unwritten(flushing: flushing).filter { report.failedRemovals[$0.name] == nil }
    if !items.isEmpty { await write(items, to: storage, &report) }
    return report
  }

  private func removeCopies(
    _ storage: Storage<Key, Value>,
    _ report: inout StorageReport
  ) async {
    var names: [(name: String, revision: UInt64)] = []
    var isComplete = false
    var revisions: [UInt64?] = []
    stripes.withEachLock { stripe in
      revisions.append(stripe.ledger?.completeRemoval)
      if stripe.ledger?.completeRemoval != nil { isComplete = true }
      for (name, revision) in stripe.ledger?.removals ?? [:] { names.append((name, revision)) }
    }
    if isComplete {
      do {
        try await storage.cacher.removeAllEntries()
        var remaining = revisions[...]
        stripes.withEachLock { stripe in
          if let revision = remaining.popFirst() ?? nil {
            stripe.ledger?.confirmCompleteRemoval(revision)
          }
        }
      } catch {
        report.completeRemovalError = error
        noteCacherError([:], error)
      }
    } else if !names.isEmpty {
      do {
        try await storage.cacher.removeEntries(forKeys: Set(names.map(\.name)))
      } catch {
        report.failedRemovals = failures(in: error, of: names.map(\.name))
        noteCacherError(report.failedRemovals)
      }
      let removed = names.filter { report.failedRemovals[$0.name] == nil }
      stripes.withEachLock { stripe in stripe.ledger?.confirmRemoval(of: removed) }
    }
  }

  /// A value that the cacher does not have.
  private struct Unwritten: Sendable {
    let name: String
    let revision: UInt64
    let copy: StoredCopy<Value>
    /// The key and its hash, if it is in memory.
    let key: (key: Key, hash: UInt64)?
  }

  private func unwritten(flushing: Bool) -> [Unwritten] {
    var items: [Unwritten] = []
    stripes.withEachLock { stripe in
      guard let ledger = stripe.ledger else { return }
      for (name, departure) in ledger.departures {
        items.append(
          Unwritten(name: name, revision: departure.revision, copy: departure.copy, key: nil)
        )
      }
      guard flushing else { return }
      for entry in ledger.unflushed.entries {
        guard let index = stripe.keys.index(of: entry.key, hash: entry.hash),
          let copy = stripe[index].copy
        else { continue }
        items.append(
          Unwritten(
            name: entry.element.name,
            revision: entry.element.revision,
            copy: copy,
            key: (entry.key, entry.hash)
          )
        )
      }
    }
    return items
  }

  private func write(
    _ items: [Unwritten],
    to storage: Storage<Key, Value>,
    _ report: inout StorageReport
  ) async {
    let now = time.now()
    let wallTime = wallClockTime()
    var entries: [String: CacheEntry<Value>] = [:]
    for item in items {
      entries[item.name] = CacheEntry(
        value: item.copy.value,
        storedAt: wallTime - .nanoseconds(now - item.copy.storedAt),
        validator: item.copy.validator,
        timeToLive: item.copy.ownTimeToLive.map { .nanoseconds($0) }
      )
    }
    do {
      try await storage.cacher.store(entries)
    } catch {
      report.failedWrites = failures(in: error, of: Array(entries.keys))
      noteCacherError(report.failedWrites)
    }
    if entries.count > report.failedWrites.count {
      tell(.flushed(count: entries.count - report.failedWrites.count))
    }
    for item in items {
      var garbage = StorageLedger<Key, Value>.Garbage()
      let failure = report.failedWrites[item.name]
      if let (key, hash) = item.key {
        guard failure == nil else { continue }
        stripes.withLock(hash: hash) {
          $0.ledger?.confirm(key, hash: hash, revision: item.revision, &garbage)
        }
      } else {
        // It is in one of the stripes; there are few of them, and few such values.
        var isGone = false
        stripes.withEachLock { stripe in
          let ended = stripe.ledger?.endDeparture(
            item.name,
            revision: item.revision,
            &garbage
          )
          if ended == true { isGone = true }
        }
        if isGone, let failure { storage.noteLoss(item.name, failure) }
      }
    }
  }

  /// Which of the names a cacher has failed with, and why.
  private func failures(in error: any Error, of names: [String]) -> [String: any Error] {
    var failures: [String: any Error] = [:]
    if let error = error as? CacherError {
      for name in names { failures[name] = error.failures[name] }
    }
    // An error that names none of them is about all of them.
    if failures.isEmpty { for name in names { failures[name] = error } }
    return failures
  }

  /// Counts what a cacher failed with.
  private func noteCacherError(_ failures: [String: any Error], _ error: (any Error)? = nil) {
    stripes.withLock(hash: 0) { $0.statistics.cacherErrors += max(1, failures.count) }
    for (name, error) in failures { tell(.cacherFailed(key: name, error: error)) }
    if let error { tell(.cacherFailed(key: nil, error: error)) }
  }
}
