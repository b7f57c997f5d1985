extension KeyedCache {
  /// Returns whether the entry of a flight's key has yet to be written or removed, for itself or for one of its tags.
  func owes(_ flight: Flight, _ name: String, _ tags: [CacheTag: UInt64]) -> Bool {
    let key = key(of: flight)
    if !tags.isEmpty, let tagging, tagging(key).contains(where: { tags[$0] != nil }) { return true }
    return shards.withLock(hash: flight.hash) { shard in
      shard.extras?.pendingWrites?.owes(key, hash: flight.hash, name: name) ?? false
    }
  }

  /// Removes the record of a value to write, because a newer value that is not written is about to replace it.
  ///
  /// - Returns: Whether there was one.
  func forgetChange(_ flight: Flight) -> Bool {
    let key = key(of: flight)
    return change(flight.hash, at: .min) { shard, transaction in
      guard shard.extras?.pendingWrites?.isUnwritten(key, hash: flight.hash) == true else {
        return false
      }
      shard.extras?.pendingWrites?.removeNote(key, hash: flight.hash, &transaction.effects)
      return true
    }
  }

  /// Enqueues the pending writes, removals and refreshes of the shared tier.
  func sendChanges() {
    storage?.enqueue(.sending) { [self] in await payDebts() }
  }

  /// Pays the debts, in the queue of the storage; debts that cannot be paid stay, and do not prevent others.
  func payDebts() async {
    guard let shared, let storage else { return }
    _ = await synchronize(flushing: true)
    // A tier that does not answer is not waited for once more.
    guard !storage.calls.hasUnreturnedChanges else { return }
    try? await storage.removeTags()
    try? await storage.calls.run(.write) { try await shared.payOutdates() }
  }

  /// Removes the entries with one of some tags from the shared tier.
  ///
  /// - Throws: The error because of which entries can remain. The removal is repeated before such an entry is used.
  func removeSharedTags() async throws {
    guard let storage else { return }
    let failure = Locked<(any Error)?>(nil)
    await storage.queue.perform { [self] in
      do {
        try await storage.removeTags()
      } catch {
        reportCacherFailures([:], error)
        failure.withLock { $0 = error }
      }
    }
    if let error = failure.withLock({ $0 }) { throw error }
  }
}

extension StoredLayer {
  /// Removes the entries with the tags that have to be removed from the shared tier.
  fileprivate func removeTags() async throws {
    try await calls.run(.removal) {
      try await self.shared?.payTagRemovals(unless: self.takesAsDone)
    }
  }
}
