extension KeyedCache {
  /// Marks the values of some keys as changed at their origin, also in the shared tier.
  @usableFromInline
  @inline(never)
  func outdateShared(_ names: [String]) {
    link?.withDebts { $0.outdate(names) }
    sendChanges()
  }

  /// Marks all values as changed at their origin, and in the shared tier the values of the known keys.
  @usableFromInline
  func outdateAllShared() {
    guard let link else { return }
    let names = link.knownKeys.map(\.name)
    let now = time.now()
    link.withDebts { debts in
      debts.outdate(names)
      debts.goAhead(at: now)
    }
    sendChanges()
  }

  /// Enqueues the pending writes, removals and refreshes of the shared tier.
  @usableFromInline
  func sendChanges() {
    guard let link, let storage, link.schedule() else { return }
    storage.queue.add { [self] in
      link.begin()
      _ = await payDebts(link, storage)
    }
  }

  /// Pays the debts, in the queue of the storage.
  func payDebts(
    _ link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>
  ) async -> Bool {
    let report = await synchronize(storage, flushing: true)
    guard report.hasRemoved, report.failedWrites.isEmpty else { return false }
    do {
      try await storage.calls.run(.removal) { try await link.payTagRemovals() }
      try await storage.calls.run(.write) { try await link.payOutdates() }
      return true
    } catch {
      return false
    }
  }

  /// Removes the entries with one of some tags from the shared tier.
  ///
  /// - Throws: The error because of which entries can remain. The removal is repeated before such an entry is used.
  @usableFromInline
  func removeSharedTags() async throws {
    guard let link, let storage else { return }
    let failure = Locked<(any Error)?>(nil)
    let turn = storage.queue.add { [self] in
      do {
        try await storage.calls.run(.removal) { try await link.payTagRemovals() }
      } catch {
        noteCacherError([:], error)
        failure.withLock { $0 = error }
      }
    }
    guard !storage.queue.isCurrent else { return }
    await turn.value
    if let error = failure.withLock({ $0 }) { throw error }
  }
}
