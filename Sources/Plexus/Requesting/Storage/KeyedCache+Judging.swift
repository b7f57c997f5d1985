// Whether a stored copy may be used: the marks of this process (`OwnMarksState`), the ones that the cacher has stored with the
// entry, and the clock.

extension KeyedCache {
  /// Judges a stored copy by the clears and refreshes since its fetch began; one that was cleared is removed.
  func judge(
    _ entry: CacheEntry<Value>,
    of key: Key,
    hash: UInt64,
    name: String
  ) -> OwnMarksState.Verdict {
    guard let storage else { return .usable }
    // User code, called without a lock.
    let tags = tags(of: key, entry.value) + (valueTags == nil ? [] : entry.tags)
    var verdict = storage.ledger.marks.withLock {
      $0.judge(name, tags, storedAt: entry.storedAt)
    }
    // A shared tier judges the rest itself.
    if shared != nil { return verdict == .outdated ? .outdated : .usable }
    if entry.isOutdated, verdict == .usable { verdict = .outdated }
    if entry.isCleared { verdict = .cleared }
    // A clock that was set back makes the age of a copy unknown: it is a fallback once, and then removed.
    let isFromTheFuture = age(of: entry) < .zero
    guard verdict == .cleared || isFromTheFuture else { return verdict }
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
