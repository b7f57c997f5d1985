// The bound of memory: which value is evicted, `S3FIFO` decides.

extension Shard {
  /// Makes room for a new value, or evicts it if it costs more than the limit.
  ///
  /// A value with live subscriptions is not evicted: only its cost is recorded.
  ///
  /// Indices are invalid after this call.
  @inlinable
  mutating func keep(_ index: Int, cost: Int, _ transaction: inout Transaction) {
    guard let extras, let limit = extras.eviction?.limit else { return }
    guard !isLive(index) else {
      extras.eviction?.setCost(cost, at: index)
      return
    }
    guard cost <= limit else { return evict(index, &transaction) }
    extras.eviction?.keep(index, hash: keys.entries[index].hash, cost: cost)
    while let victim = nextVictim() {
      statistics.evictions += 1
      transaction.effects.tell(of: keys.entries[victim].key) {
        .removed(key: $0, cause: .capacity)
      }
      evict(victim, &transaction)
    }
  }

  @inlinable
  mutating func nextVictim() -> Int? {
    extras?.eviction?.nextVictim { keys.entries[$0].hash }?.index
  }

  /// Removes a value from memory; a pending write keeps a copy, and a running flight continues.
  @inlinable
  mutating func evict(_ index: Int, _ transaction: inout Transaction) {
    if extras?.pendingWrites != nil { depart(index, &transaction.effects) }
    guard keys.entries[index].element.state.isAtRest else {
      return dropValue(index, &transaction.effects)
    }
    if hasHubs {
      publish(.unknown, keys.entries[index].key, keys.entries[index].hash, &transaction.effects)
    }
    transaction.release(remove(at: index))
  }

  /// Removes the value of an entry whose flight continues.
  @usableFromInline
  @inline(never)
  mutating func dropValue(_ index: Int, _ effects: inout CacheEffects) {
    effects.release(keys.entries[index].element)
    _ = setValue(nil, at: index)
    keys.entries[index].element.state.dropValue()
    extras?.eviction?.discard(index)
    publish(index, &effects)
  }
}
