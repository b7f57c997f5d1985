extension KeyedCache {
  /// Whether keys or values have tags.
  var hasTags: Bool { tagging != nil || valueTags != nil }

  /// Returns the tags of a key and of its value; user code, called with no lock held.
  func tags(of key: Key, _ value: Value) -> [CacheTag] {
    let tags = tagging?(key) ?? []
    return valueTags.map { tags + $0.tags(of: key, value) } ?? tags
  }

  /// Returns the tags of a value that arrives, if values have tags; user code, called with no lock held.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: Its key.
  ///   - stack: The drafts that were reapplied to it, if there are any.
  /// - Returns: The tags.
  @usableFromInline
  @inline(never)
  func arrivalTags(
    of value: Value,
    _ key: Key,
    below stack: DraftsToReapply<Value>? = nil
  ) -> Shard<Key, Value>.ArrivalTags? {
    guard valueTags != nil else { return nil }
    let base = tags(of: key, value)
    guard let top = stack?.results.last?.value else { return .init(visible: base, base: base) }
    return .init(visible: tags(of: key, top), base: base)
  }

  /// Returns whether a stored copy that was read before was cleared by one of its tags since it was stored.
  func isCleared(_ copy: ValueOutcome<Value>, of key: Key, at now: Nanoseconds) -> Bool {
    guard let valueTags, let storage else { return false }
    // Rounded down: a copy counts as older rather than as newer.
    let age = Duration.nanoseconds(age(of: copy.storedAt, at: now)) + .milliseconds(1)
    let (name, tags) = (storage.name(of: key), tags(of: key, copy.value))
    return valueTags.isCleared(name, tags, storedAt: wallClockTime() - age)
  }

  /// Returns the keys with one of some tags that have a value, a fetch, a subscriber, or a pending write.
  func keys(of tags: Set<CacheTag>) -> [TagIndex<Key>.HashedKey] {
    guard hasTags, !tags.isEmpty else { return [] }
    var keys: [TagIndex<Key>.HashedKey] = []
    var others: [TagIndex<Key>.HashedKey] = []
    var departed: [PendingWrites<Key, Value>.Departure] = []
    shards.withEachLock { shard in
      keys += shard.extras?.tagIndex?.keys(of: tags) ?? []
      // Unread states of subscribers can hold a value that is no longer in memory.
      for hub in shard.extras?.hubs.entries ?? []
      where shard.keys.index(of: hub.key, hash: hub.hash) == nil {
        others.append((hub.key, hub.hash))
      }
      departed += shard.extras?.pendingWrites?.departures.values.map(\.self) ?? []
      // Drafts outlast the value that they were made on.
      for edits in shard.extras?.edits.entries ?? []
      where shard.keys.index(of: edits.key, hash: edits.hash) == nil {
        others.append((edits.key, edits.hash))
      }
    }
    // The closures are user code.
    if let tagging { keys += others.filter { !tags.isDisjoint(with: tagging($0.key)) } }
    for value in departed where !tags.isDisjoint(with: self.tags(of: value.key, value.copy.value)) {
      keys.append((value.key, value.hash))
    }
    return keys
  }

  /// Records the clear of tags, by which stored copies are judged.
  func recordClear(of tags: Set<CacheTag>) {
    guard hasTags else { return }
    recentChanges?.change(tags)
    if let shared { return shared.withDebts { $0.tagRemovals.owe(tags) } }
    note(tags, areCleared: true)
  }

  /// Records the refresh of tags, by which stored copies are judged.
  func recordRefresh(of tags: Set<CacheTag>) {
    guard hasTags else { return }
    recentChanges?.change(tags)
    note(tags, areCleared: false)
  }

  private func note(_ tags: Set<CacheTag>, areCleared: Bool) {
    if let storage {
      note(storage.marks(of: tags, areCleared: areCleared))
    } else {
      valueTags?.note(tags, areCleared: areCleared)
    }
  }

  /// Removes the values with one of some tags, and detaches their flights.
  @usableFromInline
  func forget(tags: Set<CacheTag>) {
    recordClear(of: tags)
    for (key, hash) in keys(of: tags) {
      invalidate(key, hash: hash, name: storage?.name(of: key), isSignedOut: true)
    }
    if valueTags != nil { resetUnread() }
  }

  /// Replaces the unread states of subscribers of keys that are not in memory: they can hold values with any tags.
  private func resetUnread() {
    var effects = makeEffects()
    shards.withEachLock { shard in
      for hub in shard.extras?.hubs.entries ?? []
      where shard.keys.index(of: hub.key, hash: hub.hash) == nil {
        shard.publishReset(hub.key, hub.hash, &effects)
      }
    }
    effects.perform(in: self)
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
