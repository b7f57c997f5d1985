// The values that a fetch of several keys returns for keys that were not requested.

extension KeyedCache {
  /// The start of a call of the fetch of several keys.
  ///
  /// It is read by the call itself: after its time limit, the flight has begun its next attempt.
  @usableFromInline
  struct BulkCall: Sendable {
    @usableFromInline let number: UInt64
    @usableFromInline let start: Nanoseconds
    @usableFromInline let exactStart: Nanoseconds
    @usableFromInline let confirmationCount: UInt64
    @usableFromInline let fetchStart: FetchStart?
  }

  /// Calls the fetch of several keys, and keeps the values of other keys that it returns.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - scope: The fetch that the call is part of.
  ///   - bulkFetch: The fetch.
  /// - Returns: The values.
  /// - Throws: The error of the fetch.
  @inlinable
  func fetchValues(
    of keys: [Key],
    for scope: WaitNode,
    by bulkFetch: @escaping BulkFetch
  ) async throws -> BulkValues<Key, Value> {
    guard let recentChanges else {
      return try await WaitScope.local.withValue(scope) { try await bulkFetch(keys) }
    }
    let call = beginCall(recentChanges)
    defer { recentChanges.end(call.number) }
    let values = try await WaitScope.local.withValue(scope) { try await bulkFetch(keys) }
    // After its time limit, or without callers, the call has no result.
    if values.hasOthers(than: keys), !Task.isCancelled {
      keep(values.others(than: keys), of: call, recentChanges)
    }
    return values
  }

  @usableFromInline
  func beginCall(_ recentChanges: RecentChanges<Key>) -> BulkCall {
    // The number first: what changes afterwards is newer than the call.
    let number = recentChanges.begin()
    return BulkCall(
      number: number,
      start: time.now(),
      exactStart: time.exactNow(),
      confirmationCount: confirmationCount,
      fetchStart: storage?.fetchStart
    )
  }

  /// Keeps values that were not requested.
  @inlinable
  func keep(
    _ values: [(key: Key, outcome: ValueOutcome<Value>)],
    of call: BulkCall,
    _ recentChanges: RecentChanges<Key>
  ) {
    let duration = duration(of: call)
    for (key, outcome) in values where key == key {
      outcome.storedAt = call.start
      keep(outcome, of: key, call, duration: duration, recentChanges)
    }
  }

  @usableFromInline
  func duration(of call: BulkCall) -> Duration {
    .nanoseconds(max(0, time.exactNow().subtractingSaturating(call.exactStart)))
  }

  /// Returns whether another cache has not cleared one of the tags of a value since its fetch began.
  @usableFromInline
  func isUsable(_ arrival: borrowing Arrival, _ tags: [CacheTag]) -> Bool {
    guard let start = arrival.start, let valueTags else { return true }
    return valueTags.judge(arrival.name ?? "", tags, since: start.order) == .usable
  }

  /// Keeps a value that was not requested, unless its key is in flight or has changed since the call began.
  @inlinable
  func keep(
    _ outcome: ValueOutcome<Value>,
    of key: Key,
    _ call: BulkCall,
    duration: Duration,
    _ recentChanges: RecentChanges<Key>
  ) {
    let hash = hasher.hash(key)
    let lifetime = lifetime(outcome.terms)
    // These calls run user code.
    let tags = tagging?(key)
    var arrival = Arrival(
      .fetched(after: call.confirmationCount),
      cost: cost(of: outcome.value),
      name: storage?.name(of: key)
    )
    arrival.start = call.fetchStart
    arrival.tags = arrivalTags(of: outcome.value, key)
    let allTags = arrival.tags?.base ?? tags ?? []
    change(hash, at: time.now()) { shard, transaction in
      guard shard.pauseCount == 0, !shard.isEdited(key, hash),
        !recentChanges.hasChanged(key, hash: hash, allTags, since: call.number),
        isUsable(arrival, allTags)
      else { return }
      if let index = shard.keys.index(of: key, hash: hash), !shard[index].state.isAtRest { return }
      let index = shard.place(of: key, hash: hash, tags: tags)
      arrival.index = index
      recentChanges.keep(key, hash: hash, by: call.number, &transaction.effects)
      shard.put(outcome.value, &arrival, &transaction)
      _ = shard[index].state.succeed(
        validator: outcome.validator,
        lifetime: lifetime,
        storedAt: outcome.storedAt,
        at: transaction.now
      )
      transaction.effects.tell(of: key) {
        .fetched(key: $0, outcome: .value, duration: duration)
      }
      complete(arrival, &shard, &transaction)
    }
  }
}

extension Shard {
  /// Returns whether the value of a key is being updated.
  @inlinable
  func isEdited(_ key: Key, _ hash: UInt64) -> Bool {
    extras?.edits.index(of: key, hash: hash) != nil
  }
}
