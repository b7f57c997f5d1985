// The fetches of a cache that limits how many of them run at the same time: see `FetchLimit`.

extension KeyedCache {
  /// Waits for a place, fetches the values of flights, and ends the flights.
  @inlinable
  func fetch(
    _ flights: [Flight],
    in batch: BulkFlight?,
    within limit: FetchLimit,
    by fetch: Fetch
  ) async {
    let guest = batch ?? flights[0]
    if !limit.hasEntered(guest) { limit.enter(guest) }
    let admission = await limit.admission(of: guest)
    guard admission == .granted else {
      limit.leave(guest)
      return await turnAway(flights, admission, isBulk: batch != nil)
    }
    let departing = depart(flights, isBulk: batch != nil)
    var outcomes: [Outcome] = []
    if !departing.isEmpty {
      do {
        outcomes = try await fetch(departing, batch)
      } catch {
        outcomes = departing.map { _ in Outcome(.failure, error: error) }
      }
    }
    limit.leave(guest)
    await end(departing, with: outcomes, isBulk: batch != nil)
  }

  /// Ends flights that have no place: they were cancelled, or too many others wait.
  @usableFromInline
  func turnAway(_ flights: [Flight], _ admission: FetchLimit.Admission, isBulk: Bool) async {
    guard admission == .refused else {
      let outcomes = flights.map { _ in Outcome(.failure, error: CancellationError()) }
      return await end(flights, with: outcomes, isBulk: isBulk)
    }
    let refused = skip(flights, isBulk: isBulk)
    let outcomes = refused.map { _ in Outcome(.failure, error: MultiplexerError.overloaded) }
    await end(refused, with: outcomes, isBulk: isBulk, countsFailure: false)
  }

  /// Ends the flights among some that no caller waits for, as if they had never begun.
  ///
  /// - Returns: The others, whose failure is not remembered.
  func skip(_ flights: [Flight], isBulk: Bool) -> [Flight] {
    flights.filter { flight in
      flight.plan.remembersFailure = false
      let isSkipped = change(flight.hash, at: .min) { shard, transaction in
        guard flight.callerCount == 0 else { return false }
        guard let index = shard.keys.index(of: key(of: flight), hash: flight.hash),
          shard[index].state.running === flight
        else { return true }
        transaction.isBulk = isBulk
        let next = shard[index].state.giveUp(hasValue: shard.hasValue(index))
        if shard.hasEdits { shard.endFetch(index, &transaction.effects) }
        end(index, next: next, &shard, &transaction)
        return true
      }
      if isSkipped { launch(cancel(flight, isBulk: isBulk)) }
      return !isSkipped
    }
  }

  /// Returns whether a fetch is refused before it begins, because too many others wait.
  ///
  /// This only saves work: a fetch that begins is refused when it enters. The copy of one that reads it first can be the
  /// answer, and so can an entry of a shared tier; the request of a fetch may use the place of that fetch.
  @usableFromInline
  @inline(never)
  func refuses(
    _ index: Int,
    _ caller: Caller,
    _ shard: Shard<Key, Value>,
    _ limit: FetchLimit
  ) -> Bool {
    guard limit.isFull, caller.scope == nil, !caller.readsCopy, shared == nil else { return false }
    return shard.hasValue(index) || shard.extras?.pendingWrites?.isReadFirst != true
  }

  /// Answers a request that was refused and has no value: its flight begins all the same if the policy allows a stale value,
  /// to read the stored copy when it is refused.
  @usableFromInline
  @inline(never)
  func admitForCopy(
    _ key: Key,
    hash: UInt64,
    _ caller: Caller,
    _ effects: inout CacheEffects
  ) -> Admission {
    // User code, called without a lock.
    guard grounds(of: MultiplexerError.overloaded).policyAllows else {
      return .overloaded(hasValue: false)
    }
    var caller = caller
    caller.readsCopy = true
    return admit(key, hash: hash, caller, &effects)
  }

  /// Answers a request whose fetch was refused before it has begun.
  ///
  /// - Throws: ``MultiplexerError/overloaded`` if the policy allows no stale value.
  @usableFromInline
  @inline(never)
  func fallbackWhenOverloaded(_ key: Key, hash: UInt64) throws -> ValueOutcome<Value> {
    let error = MultiplexerError.overloaded
    // User code, called without a lock.
    let grounds = grounds(of: error)
    let isTrusted = shared == nil || isTrusted()
    let now = time.now()
    let copy = shards.withLock(hash: hash) { shard -> ValueOutcome<Value>? in
      guard let index = shard.keys.index(of: key, hash: hash),
        use(index, isTrusted: isTrusted, at: now, &shard),
        shard[index].state.allowsFallback(grounds, at: now), let copy = shard.copy(index)
      else {
        shard.statistics.misses &+= 1
        return nil
      }
      shard.statistics.staleHits &+= 1
      return copy
    }
    guard let copy else { throw error }
    copy.source = .memory
    copy.isStale = true
    copy.error = error
    return copy
  }
}
