extension KeyedCache {
  @usableFromInline typealias Transaction = Shard<Key, Value>.Transaction
  @usableFromInline typealias Arrival = Shard<Key, Value>.Arrival

  /// Changes the entries of the shard of a hash, and then does what that leaves to be done.
  @inlinable
  @inline(__always)
  func change<Result>(
    _ hash: UInt64,
    at now: Nanoseconds,
    _ body: (inout Shard<Key, Value>, inout Transaction) -> Result
  ) -> Result {
    var transaction = Transaction(makeEffects(), at: now)
    let result = shards.withLock(hash: hash) { body(&$0, &transaction) }
    transaction.perform(in: self)
    return result
  }

  /// Records that the value of an entry has changed, or is known to be outdated, for calls in progress that can return it.
  @usableFromInline
  @inline(never)
  func noteChange(
    _ index: Int,
    _ shard: Shard<Key, Value>,
    _ transaction: inout Transaction
  ) {
    let entry = shard.keys.entries[index]
    recentChanges?.change(entry.key, hash: entry.hash, &transaction.effects)
  }

  /// Does what follows from the new value and state of an entry, in one order.
  ///
  /// Indices are invalid after this call.
  @inlinable
  @inline(__always)
  func complete(
    _ arrival: borrowing Arrival,
    _ shard: inout Shard<Key, Value>,
    _ transaction: inout Transaction
  ) {
    publish(arrival.index, launching: arrival.next, &shard, &transaction)
    if shard.extras != nil { shard.keep(arrival, &transaction) }
    guard let staleTimeToLive, transaction.value == nil else { return }
    shard.sweepStaleValues(
      at: transaction.now,
      staleTimeToLive: staleTimeToLive,
      staleTime,
      &transaction.effects
    )
  }

  /// Ends the flight of an entry, which is removed if it has nothing left.
  @inlinable
  @inline(__always)
  func end(
    _ index: Int,
    next: Flight?,
    _ shard: inout Shard<Key, Value>,
    _ transaction: inout Transaction
  ) {
    publish(index, launching: next, &shard, &transaction)
    if next == nil { shard.removeIfEmpty(index, &transaction.effects) }
  }

  /// Publishes the state after a change, and launches the next flight.
  @inlinable
  @inline(__always)
  func publish(
    _ index: Int,
    launching next: Flight?,
    _ shard: inout Shard<Key, Value>,
    _ transaction: inout Transaction
  ) {
    if let next {
      // It is needed until the last live subscription ends.
      if shard.hasLives, shard.isLive(index) { shard[index].state.needObservers() }
      shard.launch(next, index, isBulk: transaction.isBulk, &transaction.effects)
    }
    shard.publish(index, &transaction.effects)
  }
}
