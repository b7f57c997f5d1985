/// Values for a shared tier, whose keys other processes change as well.
///
/// A value that was stored here before another process changed its key must not replace that change. A value is contested
/// if such a change was announced since it was stored, if announcements can have been lost, or if it could not be sent. It
/// is then written only if the engine finds that nothing has changed, except by this cache; otherwise all processes fetch the
/// key again. A value that is not contested is newer than every change that was announced.
extension StorageSynchronization {
  /// The results of some writes.
  struct Results: Sendable {
    var failures: [String: any Error] = [:]
    /// The names of the values that another process can have changed since they were stored.
    var overtaken: Set<String> = []
  }

  /// Stores entries in the shared tier.
  ///
  /// - Parameters:
  ///   - entries: The entries by name, without the ones that were not sent afterwards.
  ///   - items: The values that they were made of.
  ///   - shared: The tier.
  /// - Returns: The results.
  func store(
    _ entries: inout [String: CacheEntry<Value>],
    of items: [Unwritten],
    in shared: SharedLayer<Key, Value>
  ) async -> Results {
    var results = Results()
    // An engine that counts no changes cannot compare.
    let compares = (storage.generation?.marks ?? 0) > 0
    for item in items {
      entries[item.name]?.storeID = .init(cache: shared.id, number: item.note.revision)
      guard item.note.isContested || shared.knows(item.name) else { continue }
      if compares {
        entries[item.name]?.unchangedSince = item.entry.generation?.marks ?? 0
      } else if item.note.isContested {
        results.overtaken.insert(item.name)
      }
    }
    for name in results.overtaken { entries[name] = nil }
    cache.watchStored(items.map { ($0.name, $0.key) })
    results.failures = await store(entries)
    var others: [String: CacheEntry<Value>] = [:]
    for item in items where results.failures[item.name] is SharedCache.Overtaken {
      results.failures[item.name] = nil
      guard let note = note(of: item) else {
        // There is a newer value, which is written in its turn, or none.
        entries[item.name] = nil
        continue
      }
      if note.isContested {
        results.overtaken.insert(item.name)
      } else {
        // The change was announced before the value was stored, or it was made before this process knew of the key.
        others[item.name] = entries[item.name]
        others[item.name]?.unchangedSince = nil
        entries[item.name]?.unchangedSince = nil
      }
    }
    if !others.isEmpty {
      for (name, error) in await store(others) {
        if error is SharedCache.Overtaken {
          // Everything has been removed since it was stored.
          results.overtaken.insert(name)
        } else {
          results.failures[name] = error
        }
      }
    }
    for item in items
    where entries[item.name] != nil && entries[item.name]?.unchangedSince == nil
      && results.failures[item.name] == nil && isContested(item)
    {
      // It can have replaced a change that was announced meanwhile.
      results.overtaken.insert(item.name)
    }
    return results
  }

  /// Records that another process can have changed the key of a value before it is written.
  func contest(_ item: Unwritten) {
    let hash = cache.hasher.hash(item.key)
    cache.shards.withLock(hash: hash) {
      $0.extras?.pendingWrites?.contest(item.key, hash: hash, name: item.name)
    }
  }

  private func isContested(_ item: Unwritten) -> Bool {
    note(of: item)?.isContested ?? false
  }

  /// Returns the present note of a value, unless there is a newer value.
  private func note(of item: Unwritten) -> PendingWrites<Key, Value>.Note? {
    let hash = cache.hasher.hash(item.key)
    return cache.shards.withLock(hash: hash) { shard in
      shard.extras?.pendingWrites?
        .note(item.key, hash: hash, name: item.name, revision: item.note.revision)
    }
  }

  /// Lets all processes fetch a key again whose value was not written, unless there is a newer value.
  func giveUp(_ item: Unwritten) {
    guard note(of: item) != nil else { return }
    remove(item)
    cache.shared?.withDebts { $0.outdates.owe([item.name]) }
    cache.distrust(item.key, hash: cache.hasher.hash(item.key))
  }
}
