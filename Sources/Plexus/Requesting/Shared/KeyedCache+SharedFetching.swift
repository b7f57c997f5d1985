extension KeyedCache {
  /// Does the work of a flight with the shared tier, and ends it.
  @usableFromInline
  @concurrent
  func fetchShared(
    _ flight: Flight,
    by link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>
  ) async {
    let fetching = SharedFetching(cache: self, link: link, storage: storage, scope: flight) {
      [self] flights, _ in
      [try await attempts(of: flights[0], operations.fetch)]
    }
    await fetching.run([flight])
  }

  /// Does the work of several flights with the shared tier, and ends them.
  @usableFromInline
  func fetchShared(
    _ flights: [Flight],
    in batch: BulkFlight,
    by link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>,
    with bulkFetch: @escaping BulkFetch
  ) async {
    let fetching = SharedFetching(cache: self, link: link, storage: storage, scope: batch) {
      [self] flights, part in
      let values = try await values(of: flights, in: part ?? batch, with: bulkFetch)
      return flights.map { flight in
        do {
          return try outcome(of: flight, in: values)
        } catch {
          return Outcome(.failure, error: error)
        }
      }
    }
    await fetching.run(flights)
  }

  // MARK: - Keys

  /// Observes the changes of a flight's key until the flight ends.
  func watch(
    _ flight: Flight,
    _ name: String,
    _ link: SharedLink<Key, Value>
  ) -> SharedWatch {
    let (watch, isCrowded) = link.watch(flight, name: name, key: key(of: flight))
    if isCrowded { forgetAbsentKeys(link) }
    return watch
  }

  /// Records keys whose values are about to be stored, so that changes of other processes reach the copies in memory.
  func noteStored(_ keys: [(name: String, key: Key)], _ link: SharedLink<Key, Value>) {
    let isCrowded = link.note(stored: keys.map { ($0.name, ($0.key, hasher.hash($0.key))) })
    if isCrowded { forgetAbsentKeys(link) }
  }

  private func forgetAbsentKeys(_ link: SharedLink<Key, Value>) {
    link.forget(
      link.knownKeys.compactMap { name, known in
        let isNeeded = shards.withLock(hash: known.hash) { shard in
          shard.keys.index(of: known.key, hash: known.hash) != nil
        }
        return isNeeded ? nil : name
      }
    )
  }

  // MARK: - Values

  /// Removes the value of a key that the tier does not confirm, so that it is not a fallback for a failed fetch.
  ///
  /// A fresh value that is renewed early stays: whether there is a renewal makes no difference to requests.
  func dropUnconfirmed(_ flight: Flight, isRemoved: Bool) {
    change(flight.hash, at: time.now()) { shard, transaction in
      guard let index = shard.keys.index(of: key(of: flight), hash: flight.hash),
        shard[index].state.running === flight, shard.hasValue(index),
        isRemoved
          && (shard[index].state.isExpired(at: transaction.now) || shard[index].state.servesRefresh)
          || shard[index].state.isDistrusted
      else { return }
      shard.dropValue(index, &transaction.effects)
    }
  }

  /// Removes the record of a value to write, because a newer value that is not written is about to replace it.
  func forgetChange(_ flight: Flight) {
    change(flight.hash, at: .min) { shard, transaction in
      shard.extras?.pendingWrites?.forgetNote(
        key(of: flight),
        hash: flight.hash,
        &transaction.effects
      )
    }
  }

  /// Returns whether the entry of a flight's key has yet to be written or removed, for itself or for one of its tags.
  func owes(_ flight: Flight, _ name: String, _ tags: [CacheTag: UInt64]) -> Bool {
    let key = key(of: flight)
    if !tags.isEmpty, let tagging, tagging(key).contains(where: { tags[$0] != nil }) { return true }
    return shards.withLock(hash: flight.hash) { shard in
      shard.extras?.pendingWrites?.owes(key, hash: flight.hash, name: name) ?? false
    }
  }
}
