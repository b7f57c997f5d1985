extension KeyedCache {
  /// Returns the keys with one of some tags that have a value, a fetch, a subscriber, or a pending write.
  func keys(of tags: Set<CacheTag>) -> [TagIndex<Key>.HashedKey] {
    guard let tagging, !tags.isEmpty else { return [] }
    var keys: [TagIndex<Key>.HashedKey] = []
    var others: [TagIndex<Key>.HashedKey] = []
    shards.withEachLock { shard in
      keys += shard.extras?.tagIndex?.keys(of: tags) ?? []
      // Unread states of subscribers can hold a value that is no longer in memory.
      for hub in shard.extras?.hubs.entries ?? []
      where shard.keys.index(of: hub.key, hash: hub.hash) == nil {
        others.append((hub.key, hub.hash))
      }
      others += shard.extras?.pendingWrites?.departedKeys ?? []
      // Drafts outlast the value that they were made on.
      for edits in shard.extras?.edits.entries ?? []
      where shard.keys.index(of: edits.key, hash: edits.hash) == nil {
        others.append((edits.key, edits.hash))
      }
    }
    // `tagging` is user code.
    return keys + others.filter { !tags.isDisjoint(with: tagging($0.key)) }
  }

  /// Records the clear of tags, by which stored copies are judged.
  func recordClear(of tags: Set<CacheTag>) {
    guard tagging != nil else { return }
    recentChanges?.change(tags)
    if let shared { return shared.withDebts { $0.tagRemovals.owe(tags) } }
    if let storage { note(storage.marks(of: tags, areCleared: true)) }
  }

  /// Records the refresh of tags, by which stored copies are judged.
  func recordRefresh(of tags: Set<CacheTag>) {
    guard tagging != nil else { return }
    recentChanges?.change(tags)
    if let storage { note(storage.marks(of: tags, areCleared: false)) }
  }

  /// Removes the values with one of some tags, and detaches their flights.
  @usableFromInline
  func forget(tags: Set<CacheTag>) {
    recordClear(of: tags)
    for (key, hash) in keys(of: tags) {
      invalidate(key, hash: hash, name: storage?.name(of: key), isSignedOut: true)
    }
  }

  /// Removes the values with one of some tags, and their stored copies as far as they are known.
  ///
  /// Other copies are not used, and are removed when they are read. A shared tier removes all of them.
  ///
  /// - Throws: The error because of which copies can remain.
  @usableFromInline
  func clear(tags: Set<CacheTag>) async throws {
    forget(tags: tags)
    guard shared != nil else { return try await removeStored(named: nil, byTag: true) }
    try await storage?.clearing {
      var failure: (any Error)?
      do { try await removeStored(named: nil, byTag: true) } catch { failure = error }
      // Also then: an engine repeats only the removals that it has received.
      do { try await removeSharedTags() } catch { failure = failure ?? error }
      if let failure { throw failure }
    }
  }

  /// Marks the values with one of some tags as changed at their origin.
  func refresh(tags: Set<CacheTag>) -> RefreshTicket {
    recordRefresh(of: tags)
    var ticket: RefreshTicket?
    for (key, hash) in keys(of: tags) { ticket = refresh(key, hash: hash) }
    // Without a key, the reference still requires the refreshes before.
    return ticket ?? drawTicket()
  }
}
