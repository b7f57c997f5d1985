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
    below stack: DraftStack<Value>? = nil
  ) -> [Flight] {
    if stack == nil { flight.noteOutcome() }
    let now = time.now()
    let key = key(of: flight)
    if outcome.isNew {
      // A value is as old as the start of its fetch.
      outcome.storedAt = flight.startTime ?? now
    } else if outcome.kind == .restored {
      outcome.source = .cacher
    }
    // Both calls run user code.
    var cost =
      stack?.base?.cost
      ?? (cost == nil ? 1 : candidate(of: outcome).map { self.cost(of: $0) } ?? 0)
    let name = outcome.isNew && (link == nil || outcome.removesCopy) ? storage?.name(of: key) : nil
    // With drafts, a restored value can become another one.
    let baseName = stack == nil ? nil : storage?.name(of: key)
    var effects = makeEffects()
    // Replaced objects are released after unlocking.
    var old: Value?
    var details: EntryState.Details.Box?
    var evicted = Shard<Key, Value>.Evicted()
    var missing: DraftStack<Value>?
    let answer = shards.withLock(hash: flight.hash) { shard -> Outcome in
      if stack == nil {
        if !isBulk { shard.countTime(of: flight) }
        count(outcome, of: flight, key, countsFailure: countsFailure, &shard, &effects)
      }
      guard let index = shard.keys.index(of: key, hash: flight.hash),
        shard[index].state.running === flight
      else { return outcome }
      if shard.hasEdits {
        missing = missingDrafts(outcome, of: flight, shard, index, stack)
        if missing != nil { return outcome }
      }
      // Only a failure can have another answer than its outcome.
      let answer = outcome.kind == .failure ? self.answer(outcome, shard, index, at: now) : outcome
      details = shard[index].state.box
      let hadValue = shard.hasValue(index)
      let hadQueued = shard[index].state.queued != nil
      if hadQueued, isQueuedFlightLeft(index, shard) { shard[index].state.dequeue() }
      let next = apply(outcome, to: &shard, index, flight, at: now, &old, &effects)
      let changesBase =
        shard.hasEdits
        && settleDrafts(
          outcome,
          of: flight,
          &shard,
          index,
          hadValue: hadValue,
          stack,
          &cost,
          &effects
        )
      if outcome.kind == .value || outcome.kind == .restored {
        shard.extras?.idleTimes?.renew(index, at: now)
      }
      if outcome.kind == .transient {
        if hadValue, effects.tellsEvents {
          shard.note(key, &effects, in: self) { .removed(key: $0, cause: .transient) }
        }
        if let name {
          // An older copy must not come back in its place.
          shard.extras?.pendingWrites?.remove(key, hash: flight.hash, name: name, &effects)
          effects.callsCacher = true
        }
        if shard.hasHubs {
          let value = stack?.results.last?.value ?? valued(outcome).value
          shard.publish(.loaded(value), key, flight.hash, &effects)
        }
      } else if next != nil, shard.hasHubs {
        shard.publish(shard.restingState(index), key, flight.hash, &effects)
      }
      let isRestoredByFailure = outcome.kind == .failure && !hadValue && shard.hasValue(index)
      if isRestoredByFailure {
        shard.statistics.restorations &+= 1
        if effects.tellsEvents { shard.note(key, &effects, in: self) { .restored(key: $0) } }
      }
      end(index, next: next, &shard, isBulk: isBulk, &effects)
      if outcome.kind == .value || outcome.kind == .restored || isRestoredByFailure {
        // A refresh since the flight began has queued another one.
        shard.noteUnwritten(
          index,
          name: changesBase ? name ?? baseName : name,
          start: flight.fetchStart,
          isNewest: !hadQueued,
          &effects
        )
        shard.keep(index, cost: cost, &evicted, &effects, in: self)
        sweepStaleValues(of: &shard, hadValue: hadValue, at: now, &effects)
      }
      if outcome.kind == .failure { shard.noteFailure(at: now, &effects) }
      return answer
    }
    if let missing,
      let value = outcome.kind == .transient ? valued(outcome).value : candidate(of: outcome)
    {
      effects.perform(in: self)
      return finish(
        flight,
        with: outcome,
        countsFailure: countsFailure,
        isBulk: isBulk,
        below: stacked(missing, on: value, cost: cost)
      )
    }
    let launched = effects.performWithoutLaunching(in: self)
    if link != nil { endWatch(of: flight) }
    // The batch last, because it can cancel the task that this runs in.
    flight.end(with: answer)?.leave()
    withExtendedLifetime((old, details)) {}
    withExtendedLifetime(evicted) {}
    return launched
  }

  /// Returns whether all callers of the queued flight of a key have left, and the policy cancels such fetches.
  @usableFromInline
  @inline(never)
  func isQueuedFlightLeft(_ index: Int, _ shard: Shard<Key, Value>) -> Bool {
    policy.whenUnobserved == .cancel && shard[index].state.queued?.isLeft == true
      && !shard.isLive(index)
  }

  /// Returns the drafts to reapply to the value of an outcome, unless that has been done.
  @usableFromInline
  @inline(never)
  func missingDrafts(
    _ outcome: Outcome,
    of flight: Flight,
    _ shard: Shard<Key, Value>,
    _ index: Int,
    _ stack: DraftStack<Value>?
  ) -> DraftStack<Value>? {
    let entry = shard.keys.entries[index]
    switch outcome.kind {
    case .failure where outcome.failure?.stored == nil || shard.hasValue(index), .cancelled:
      return nil
    case .failure, .restored:
      return shard.missingDrafts(of: entry.key, entry.hash, above: .restored, stack)
    case .value, .transient:
      let arrival = Shard<Key, Value>.Edits.Arrival.fetched(after: flight.confirmationCount)
      return shard.missingDrafts(of: entry.key, entry.hash, above: arrival, stack)
    }
  }

  /// Puts the value of an outcome below the drafts of its key, and ends the fetch for them.
  ///
  /// - Returns: Whether the confirmed value is another one than that of the outcome.
  @usableFromInline
  @inline(never)
  func settleDrafts(
    _ outcome: Outcome,
    of flight: Flight,
    _ shard: inout Shard<Key, Value>,
    _ index: Int,
    hadValue: Bool,
    _ stack: DraftStack<Value>?,
    _ cost: inout Int,
    _ effects: inout Effects
  ) -> Bool {
    var changesBase = false
    switch outcome.kind {
    case .value:
      changesBase = shard.putBelowDrafts(
        index,
        .fetched(after: flight.confirmationCount),
        stack,
        &cost,
        &effects
      )
    case .restored,
      .failure where !hadValue && shard.hasValue(index):
      changesBase = shard.putBelowDrafts(index, .restored, stack, &cost, &effects)
    case .failure, .transient, .cancelled: break
    }
    if changesBase { shard[index].state.removeValidator() }
    shard.endFetch(index, &effects)
    return changesBase
  }

  /// Returns the value that an outcome can store in memory.
  @inlinable
  func candidate(of outcome: Outcome) -> Value? {
    switch outcome.kind {
    case .value, .restored: valued(outcome).value
    case .failure: outcome.failure?.stored.map { valued($0).value }
    case .transient, .cancelled: nil
    }
  }

  /// Counts the end of a fetch.
  @inlinable
  func count(
    _ outcome: Outcome,
    of flight: Flight,
    _ key: Key,
    countsFailure: Bool,
    _ shard: inout Shard<Key, Value>,
    _ effects: inout Effects
  ) {
    let duration = flight.duration
    switch outcome.kind {
    case .value, .transient:
      if outcome.isRevalidated { shard.statistics.revalidations &+= 1 }
      if effects.tellsEvents {
        let result: CacheEvent.FetchOutcome =
          outcome.kind == .transient ? .transient : outcome.isRevalidated ? .notModified : .value
        shard.note(key, &effects, in: self) {
          .fetched(key: $0, outcome: result, duration: duration)
        }
      }
    case .restored:
      shard.statistics.restorations &+= 1
      if effects.tellsEvents { shard.note(key, &effects, in: self) { .restored(key: $0) } }
    case .failure:
      if countsFailure { shard.statistics.failures &+= 1 }
      if effects.tellsEvents, let error = outcome.error {
        shard.note(key, &effects, in: self) {
          .fetchFailed(key: $0, error: error, duration: duration)
        }
      }
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
    let answer = ValueOutcome(valued(older).value)
    answer.storedAt = older.storedAt
    answer.source = source
    answer.isStale = true
    answer.error = outcome.error
    return answer
  }

  /// Applies the outcome of a flight to the entry of its key.
  ///
  /// - Returns: The flight that begins now, if any.
  @inlinable
  func apply(
    _ outcome: Outcome,
    to shard: inout Shard<Key, Value>,
    _ index: Int,
    _ flight: Flight,
    at now: Nanoseconds,
    _ old: inout Value?,
    _ effects: inout Effects
  ) -> Flight? {
    switch outcome.kind {
    case .value:
      old = shard.setValue(valued(outcome).value, at: index)
      return shard[index].state.succeed(
        validator: outcome.validator,
        lifetime: lifetime(outcome.terms),
        storedAt: outcome.storedAt,
        at: now
      )
    case .transient:
      old = shard.setValue(nil, at: index)
      shard.extras?.eviction?.discard(index)
      return shard[index].state.pass()
    case .restored:
      old = shard.setValue(valued(outcome).value, at: index)
      if let queued = shard[index].state.restore(outcome) { return queued }
      guard outcome.isStale else { return nil }
      let renewal = shard.makeFlight(index, source: source, priority: flight.priority)
      shard[index].state.begin(renewal, inBackground: true)
      return renewal
    case .failure:
      guard let failure = outcome.failure, let error = outcome.error else { return nil }
      if !shard.hasValue(index), let stored = failure.stored,
        stored.allowsFallback(failure.grounds, at: now)
      {
        old = shard.setValue(valued(stored).value, at: index)
        shard[index].state.fallBack(to: stored, at: now)
      }
      return shard[index].state.fail(
        with: error,
        grounds: failure.grounds,
        memory: failure.memory,
        hasValue: shard.hasValue(index),
        at: now
      )
    case .cancelled:
      return shard[index].state.giveUp(hasValue: shard.hasValue(index))
    }
  }
}
