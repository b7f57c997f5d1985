public import Synchronization

extension KeyedCache {
  /// Ends a flight; its outcome is stored if the flight is still the current one of its key.
  ///
  /// - Parameters:
  ///   - flight: The flight.
  ///   - outcome: Its outcome.
  ///   - countsFailure: Whether a failure counts; that of a fetch of several keys counts once.
  ///   - isBulk: Whether flights are launched together with others.
  ///   - stack: The drafts that were reapplied to the value of the outcome, if there are any.
  /// - Returns: The flights to launch.
  @inlinable
  func finish(
    _ flight: Flight,
    with outcome: Outcome,
    countsFailure: Bool = true,
    isBulk: Bool = false,
    below stack: DraftsToReapply<Value>? = nil
  ) -> [Flight] {
    if stack == nil { flight.noteOutcome() }
    let now = time.now()
    if outcome.isNew {
      // A value is as old as the start of its fetch.
      outcome.storedAt = flight.attemptTime ?? now
    } else if outcome.kind == .restored {
      outcome.source = .cacher
    }
    var arrival = arrival(of: outcome, flight, below: stack)
    var transaction = Transaction(makeEffects(), at: now)
    transaction.isBulk = isBulk
    transaction.countsFailure = countsFailure
    var missing: DraftsToReapply<Value>?
    let name = valueTags == nil && stack == nil ? nil : storage?.name(of: key(of: flight))
    let answer = shards.withLock(hash: flight.hash) { shard -> Outcome in
      if stack == nil { count(outcome, of: flight, &shard, &transaction) }
      let verdict = valueTags == nil ? .usable : judge(outcome, of: flight, arrival, name)
      guard let index = shard.keys.index(of: key(of: flight), hash: flight.hash),
        shard[index].state.running === flight
      else { return outcome.failure == nil ? outcome : detachedAnswer(outcome, at: now) }
      if verdict == .cleared {
        arrival.index = index
        return turnDown(outcome, &arrival, &shard, &transaction)
      }
      if shard.hasEdits, storesValue(outcome, shard, index) {
        missing = shard.missingDrafts(of: key(of: flight), flight.hash, arrival)
        if missing != nil { return outcome }
      }
      // Only a failure can have another answer than its outcome.
      let answer = outcome.kind == .failure ? self.answer(outcome, shard, index, at: now) : outcome
      arrival.index = index
      if stack != nil { renewStart(of: &arrival, name, &transaction.effects) }
      apply(outcome, &arrival, &shard, &transaction)
      if verdict == .outdated, arrival.next == nil { outdate(flight, &shard, &transaction.effects) }
      return answer
    }
    if let missing, let value = candidate(of: outcome) {
      transaction.perform(in: self)
      return finish(
        flight,
        with: outcome,
        countsFailure: countsFailure,
        isBulk: isBulk,
        below: stacked(missing, on: value, cost: arrival.cost, of: key(of: flight))
      )
    }
    let launched = transaction.performWithoutLaunching(in: self)
    if shared != nil { endWatch(of: flight) }
    // The batch last, because it can cancel the task that this runs in.
    flight.end(with: answer)?.leave()
    if watchesFlights.load(ordering: .relaxed) { unwatch(flight) }
    return launched
  }

  /// Returns what is known of the value of an outcome; called with no lock held, since it runs user code.
  @inlinable
  func arrival(
    of outcome: Outcome,
    _ flight: Flight,
    below stack: DraftsToReapply<Value>?
  ) -> Arrival {
    let isStored = outcome.isNew && (shared == nil || outcome.removesCopy)
    var arrival = Arrival(
      outcome.isNew ? .fetched(after: flight.attempt.confirmationCount) : .restored,
      below: stack,
      cost: stack?.base?.cost ?? cost(of: outcome),
      name: isStored ? storage?.name(of: key(of: flight)) : nil
    )
    arrival.start = outcome.isNew ? flight.attempt.fetchStart : flight.attempt.copyStart
    if valueTags != nil, let value = candidate(of: outcome) {
      arrival.tags = arrivalTags(of: value, key(of: flight), below: stack)
    }
    return arrival
  }

  /// Returns the cost of the value that an outcome can store in memory.
  @inlinable
  func cost(of outcome: Outcome) -> Int {
    guard cost != nil else { return 1 }
    return outcome.kind == .transient ? 0 : candidate(of: outcome).map { cost(of: $0) } ?? 0
  }

  /// Returns whether all callers of the queued flight of a key have left, and the policy cancels such fetches.
  @usableFromInline
  @inline(never)
  func isQueuedFlightLeft(_ index: Int, _ shard: Shard<Key, Value>) -> Bool {
    policy.whenUnobserved == .cancel && shard[index].state.queued?.isLeft == true
      && !shard.isLive(index)
  }

  /// Returns whether the subscribers of a key get the value of an outcome.
  @usableFromInline
  @inline(never)
  func storesValue(_ outcome: Outcome, _ shard: Shard<Key, Value>, _ index: Int) -> Bool {
    switch outcome.kind {
    case .value, .transient, .restored: true
    case .failure: outcome.failure?.stored != nil && !shard.hasValue(index)
    case .cancelled: false
    }
  }

  /// Returns the value that the subscribers of a key can get by an outcome.
  @inlinable
  func candidate(of outcome: Outcome) -> Value? {
    switch outcome.kind {
    case .value, .transient, .restored: valued(outcome).value
    case .failure: outcome.failure?.stored.map { valued($0).value }
    case .cancelled: nil
    }
  }

  /// Counts the end of a fetch.
  @inlinable
  func count(
    _ outcome: Outcome,
    of flight: Flight,
    _ shard: inout Shard<Key, Value>,
    _ transaction: inout Transaction
  ) {
    if !transaction.isBulk { shard.countTime(of: flight) }
    switch outcome.kind {
    case .value, .transient:
      if outcome.isRevalidated { shard.statistics.revalidations &+= 1 }
    case .restored:
      shard.statistics.restorations &+= 1
    case .failure:
      if transaction.countsFailure { shard.statistics.failures &+= 1 }
    case .cancelled:
      break
    }
    if transaction.effects.tellsEvents { tell(outcome, of: flight, &transaction.effects) }
  }

  @usableFromInline
  @inline(never)
  func tell(_ outcome: Outcome, of flight: Flight, _ effects: inout CacheEffects) {
    let (key, duration) = (key(of: flight), flight.attempt.duration)
    let joinCount = flight.joinCount
    if joinCount > 0, outcome.kind != .cancelled {
      effects.tell(of: key) { .joined(key: $0, count: joinCount) }
    }
    switch outcome.kind {
    case .value, .transient:
      let result: CacheEvent.FetchOutcome =
        outcome.kind == .transient ? .transient : outcome.isRevalidated ? .notModified : .value
      effects.tell(of: key) { .fetched(key: $0, outcome: result, duration: duration) }
    case .restored:
      effects.tell(of: key) { .restored(key: $0) }
    case .failure:
      guard let error = outcome.error else { return }
      effects.tell(of: key) { .fetchFailed(key: $0, error: error, duration: duration) }
    case .cancelled:
      break
    }
  }

  /// Returns the outcome for the callers of a flight: for a failure, an older value if it is allowed.
  @inlinable
  func answer(
    _ outcome: Outcome,
    _ shard: Shard<Key, Value>,
    _ index: Int,
    at now: Nanoseconds
  ) -> Outcome {
    guard let failure = outcome.failure else { return outcome }
    let state = shard[index].state
    var older: Outcome? = shard.copy(index)
    var source = ResponseSource.memory
    if older == nil, state.allowsPrevious { older = failure.previous }
    if older == nil {
      older = failure.stored
      source = .cacher
    }
    guard let older, older.allowsFallback(failure.grounds, at: now) else { return outcome }
    return stale(older, from: source, because: outcome.error)
  }

  /// Returns an older value as the answer of a flight that has failed.
  @inlinable
  func stale(_ older: Outcome, from source: ResponseSource, because error: (any Error)?) -> Outcome
  {
    let answer = ValueOutcome(valued(older).value)
    answer.storedAt = older.storedAt
    answer.source = source
    answer.isStale = true
    answer.error = error
    return answer
  }

  /// Applies the outcome of a flight to the entry of its key, and does what follows.
  @inlinable
  func apply(
    _ outcome: Outcome,
    _ arrival: inout Arrival,
    _ shard: inout Shard<Key, Value>,
    _ transaction: inout Transaction
  ) {
    let index = arrival.index
    if recentChanges != nil, outcome.kind != .cancelled { noteChange(index, shard, &transaction) }
    arrival.isNewest = shard[index].state.queued == nil
    if !arrival.isNewest, isQueuedFlightLeft(index, shard) { shard[index].state.dequeue() }
    let hasArrived = replaceValue(with: outcome, &arrival, &shard, &transaction)
    if shard.hasEdits {
      if arrival.changesBase { shard[index].state.removeValidator() }
      shard.endFetch(index, &transaction.effects)
    }
    if outcome.kind == .transient {
      pass(outcome, arrival, &shard, &transaction)
    } else if arrival.next != nil, shard.hasHubs {
      let entry = shard.keys.entries[index]
      shard.publish(shard.restingState(index), entry.key, entry.hash, &transaction.effects)
    }
    if hasArrived {
      complete(arrival, &shard, &transaction)
    } else {
      end(index, next: arrival.next, &shard, &transaction)
    }
    if outcome.kind == .failure { shard.noteFailure(at: transaction.now, &transaction.effects) }
  }

  /// Changes the value and the state of an entry by the outcome of its flight.
  ///
  /// - Returns: Whether there is a new value.
  @inlinable
  @inline(__always)
  func replaceValue(
    with outcome: Outcome,
    _ arrival: inout Arrival,
    _ shard: inout Shard<Key, Value>,
    _ transaction: inout Transaction
  ) -> Bool {
    let index = arrival.index
    switch outcome.kind {
    case .value:
      shard.put(valued(outcome).value, &arrival, &transaction)
      arrival.next = shard[index].state.succeed(
        validator: outcome.validator,
        lifetime: lifetime(outcome.terms),
        storedAt: outcome.storedAt,
        at: transaction.now
      )
      return true
    case .restored:
      let priority = shard[index].state.running?.priority ?? .none
      shard.put(valued(outcome).value, &arrival, &transaction)
      arrival.next = shard[index].state.restore(outcome)
      if arrival.next == nil, outcome.isStale {
        let renewal = shard.makeFlight(index, source: source, priority: priority)
        shard[index].state.begin(renewal, inBackground: true)
        arrival.next = renewal
      }
      return true
    case .transient:
      shard.put(nil, &arrival, &transaction)
      shard.extras?.eviction?.discard(index)
      arrival.next = shard[index].state.pass()
      return false
    case .failure:
      return fail(outcome, &arrival, &shard, &transaction)
    case .cancelled:
      transaction.details = shard[index].state.box
      arrival.next = shard[index].state.giveUp(hasValue: shard.hasValue(index))
      return false
    }
  }

  /// Ends the flight of an entry that has failed; a stored copy can take the place of a missing value.
  ///
  /// - Returns: Whether it does.
  @usableFromInline
  @inline(never)
  func fail(
    _ outcome: Outcome,
    _ arrival: inout Arrival,
    _ shard: inout Shard<Key, Value>,
    _ transaction: inout Transaction
  ) -> Bool {
    let index = arrival.index
    transaction.details = shard[index].state.box
    guard let failure = outcome.failure, let error = outcome.error else { return false }
    var hasArrived = false
    if !shard.hasValue(index), let stored = failure.stored,
      stored.allowsFallback(failure.grounds, at: transaction.now)
    {
      hasArrived = true
      arrival.isUsed = false
      shard.put(valued(stored).value, &arrival, &transaction)
      shard[index].state.fallBack(to: stored, at: transaction.now)
      shard.statistics.restorations &+= 1
      transaction.effects.tell(of: shard.keys.entries[index].key) { .restored(key: $0) }
    }
    arrival.next = shard[index].state.fail(
      with: error,
      grounds: failure.grounds,
      memory: failure.memory,
      hasValue: shard.hasValue(index),
      at: transaction.now
    )
    return hasArrived
  }

  /// Passes a value that is not kept to the subscribers of its key, and removes older copies.
  @usableFromInline
  @inline(never)
  func pass(
    _ outcome: Outcome,
    _ arrival: borrowing Arrival,
    _ shard: inout Shard<Key, Value>,
    _ transaction: inout Transaction
  ) {
    let entry = shard.keys.entries[arrival.index]
    if transaction.value != nil {
      transaction.effects.tell(of: entry.key) { .removed(key: $0, cause: .transient) }
    }
    if let name = arrival.name {
      // An older copy must not come back in its place.
      shard.extras?.pendingWrites?.remove(
        entry.key,
        hash: entry.hash,
        name: name,
        &transaction.effects
      )
      transaction.effects.callsCacher = true
    }
    let value = arrival.stack?.results.last?.value ?? valued(outcome).value
    shard.publish(.loaded(value), entry.key, entry.hash, &transaction.effects)
  }
}
