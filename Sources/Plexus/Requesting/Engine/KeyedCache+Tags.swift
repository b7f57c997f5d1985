extension KeyedCache {
  /// Returns the keys with one of some tags that have a value, a fetch, a subscriber, or a pending write.
  @inlinable
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
    }
    // `tagging` is user code.
    return keys + others.filter { !tags.isDisjoint(with: tagging($0.key)) }
  }

  /// Records the time of a change of tags, by which stored copies are judged.
  private func noteTags(_ note: (inout TagMarksState, Duration) -> Void) {
    guard storage != nil, tagging != nil else { return }
    var time = wallClockTime()
    // The clock can have been set back since a copy was written.
    shards.withEachLock { time = max(time, $0.extras?.pendingWrites?.newestWrite ?? .zero) }
    tagMarks.withLock { note(&$0, time) }
  }

  @usableFromInline
  func noteClear(of tags: Set<CacheTag>) {
    noteTags { $0.clear(tags, at: $1) }
    if tagging != nil { link?.withDebts { $0.remove(tags) } }
  }

  @usableFromInline
  func noteRefresh(of tags: Set<CacheTag>) {
    noteTags { $0.refresh(tags, at: $1) }
  }

  /// Removes the values with one of some tags, and detaches their flights.
  @inlinable
  func forget(tags: Set<CacheTag>) {
    noteClear(of: tags)
    for (key, hash) in keys(of: tags) {
      invalidate(key, hash: hash, name: storage?.name(of: key), isSignedOut: true)
    }
  }

  /// Removes the values with one of some tags, and their stored copies as far as they are known.
  ///
  /// Other copies are not used, and are removed when they are read. A shared tier removes all of them.
  ///
  /// - Throws: The error because of which copies can remain.
  @inlinable
  func clear(tags: Set<CacheTag>) async throws {
    forget(tags: tags)
    try await removeStored(named: nil)
    if link != nil { try await removeSharedTags() }
  }

  /// Marks the values with one of some tags as changed at their origin.
  @inlinable
  func refresh(tags: Set<CacheTag>) -> RefreshTicket {
    noteRefresh(of: tags)
    var ticket: RefreshTicket?
    for (key, hash) in keys(of: tags) { ticket = refresh(key, hash: hash) }
    // Without a key, the reference still requires the refreshes before.
    return ticket ?? drawTicket()
  }

  /// Judges a stored copy by the tags of its key; one that was cleared is removed.
  func judge(
    _ entry: CacheEntry<Value>,
    of key: Key,
    hash: UInt64,
    name: String
  ) -> TagMarksState.Verdict {
    guard let tagging else { return .usable }
    let tags = tagging(key)
    let verdict = tagMarks.withLock { $0.judge(tags, storedAt: entry.storedAt) }
    guard verdict == .cleared else { return verdict }
    var effects = makeEffects()
    shards.withLock(hash: hash) { shard in
      if shard.extras?.pendingWrites?.removeCopy(key, hash: hash, name: name) == true {
        effects.callsCacher = true
      }
    }
    effects.perform(in: self)
    return verdict
  }
}
