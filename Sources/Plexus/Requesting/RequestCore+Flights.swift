extension RequestCore {
  /// Launches a flight: from here on it ends by itself, exactly once.
  func launch(_ launch: Launch<Key, Value>) {
    let flight = launch.flight
    flight.mark.begin()
    if !launch.readsFirst { noteFetch(hash: flight.hash) }
    flight.work.start { [self] in
      self.launch(finish(flight, with: await FetchRun(core: self, launch: launch).ending()))
    }
  }

  /// Counts a fetch that is about to begin.
  func noteFetch(hash: UInt64) {
    stripes.withLock(hash: hash) { $0.statistics.fetches += 1 }
  }

  /// A flight has ended.
  ///
  /// - Parameters:
  ///   - flight: The flight.
  ///   - ending: How it has ended.
  ///   - countsFailure: Whether a failure counts; that of a fetch for several keys counts once.
  /// - Returns: The flight that has to be launched now, if there is one.
  func finish(
    _ flight: Flight<Key, Value>,
    with ending: FetchEnding<Value>,
    countsFailure: Bool = true
  ) -> [Launch<Key, Value>] {
    let batch = flight.work.finish()
    withExtendedLifetime(flight.mark.settle()) {}
    let now = time.now()
    // Both are the user's code.
    let metadata = EntryMetadata(
      cost: ending.value.map { capacity.cost(of: $0) } ?? 0,
      name: ending.isNew ? storage?.name(of: flight.key) : nil
    )
    var aftermath = makeAftermath()
    let outcome = stripes.withLock(hash: flight.hash) { stripe in
      stripe.count(ending, of: flight.key, countsFailure: countsFailure, &aftermath)
      return stripe.finish(flight, with: ending, metadata, source: source, at: now, &aftermath)
    }
    aftermath.settles.append((flight, outcome))
    let launches = aftermath.launches
    aftermath.launches = []
    carryOut(aftermath)
    // Only now: it may cancel the task that this runs in.
    batch?.leave()
    return launches
  }
}

/// What is known of a value before it is kept: finding it out may run a user's code.
struct EntryMetadata: Sendable {
  /// What keeping it costs.
  var cost: Int
  /// Its key as the cacher knows it, if there is one that has to be told.
  var name: String?
}

extension Stripe {
  /// Counts how a fetch has ended.
  mutating func count(
    _ ending: FetchEnding<Value>,
    of key: Key,
    countsFailure: Bool,
    _ aftermath: inout Aftermath<Key, Value>
  ) {
    switch ending {
    case .value, .transient:
      aftermath.note(key) { .fetched(key: $0) }
    case .restored:
      statistics.restorations += 1
      aftermath.note(key) { .restored(key: $0) }
    case .failure(let failure):
      if countsFailure { statistics.failures += 1 }
      aftermath.note(key) { .fetchFailed(key: $0, error: failure.error) }
    case .cancelled:
      break
    }
  }

  /// A flight has ended.
  ///
  /// - Returns: What those get who wait for it.
  mutating func finish(
    _ flight: Flight<Key, Value>,
    with ending: FetchEnding<Value>,
    _ metadata: EntryMetadata,
    source: FlightSource,
    at now: Nanoseconds,
    _ aftermath: inout Aftermath<Key, Value>
  ) -> Flight<Key, Value>.Outcome {
    removeFlight(flight.id, &aftermath)
    guard let index = keys.index(of: flight.key, hash: flight.hash),
      self[index].running == flight.id
    else { return outcome(of: ending, standIn: nil, at: now) }

    let before = self[index]
    aftermath.states.append(before)
    let effects = end(flight, at: index, with: ending, source: source, now: now)
    let outcome = outcome(of: ending, standIn: before, at: now)
    switch ending {
    case .transient(let value):
      noteDiscard(index)
      if let name = metadata.name {
        // An older copy must not come back in its place.
        ledger?.remove(flight.key, hash: flight.hash, name: name, &aftermath.notes)
        aftermath.callsCacher = true
      }
      publish(.loaded(value), flight.key, flight.hash, &aftermath)
    case .value, .restored, .failure, .cancelled:
      if effects.startsFlight != nil {
        publish(self[index].restingState, flight.key, flight.hash, &aftermath)
      }
    }
    let isKept =
      ending.isKept || (ending.isFailure && before.value == nil && self[index].value != nil)
    if isKept, ending.isFailure {
      statistics.restorations += 1
      aftermath.note(flight.key) { .restored(key: $0) }
    }
    ended(index, startsFlight: effects.startsFlight, &aftermath)
    if isKept {
      if ending.isNew, let name = metadata.name {
        // A refresh since the flight began has queued another one.
        ledger?.noteValue(
          flight.key,
          hash: flight.hash,
          name: name,
          isNewest: before.queued == nil,
          &aftermath.notes
        )
      }
      keep(index, cost: metadata.cost, &aftermath)
    }
    if ending.isFailure { noteFailure(at: now, &aftermath) }
    return outcome
  }

  private mutating func end(
    _ flight: Flight<Key, Value>,
    at index: Int,
    with ending: FetchEnding<Value>,
    source: FlightSource,
    now: Nanoseconds
  ) -> State.EndEffects {
    switch ending {
    case .value(let value, let validator, let lifetime):
      return self[index].succeed(
        flight.id,
        with: value,
        validator: validator,
        lifetime: lifetime,
        at: now
      )
    case .transient:
      return self[index].pass(flight.id)
    case .restored(let found, let renews):
      let renewal = nextFlight
      let effects = self[index].restore(
        flight.id,
        found.copy,
        renewal: renews ? renewal : nil
      )
      if effects.startsFlight == renewal {
        _ = makeFlight(
          for: flight.key,
          hash: flight.hash,
          source: source,
          priority: flight.work.priority ?? .medium
        )
      }
      return effects
    case .failure(let failure):
      if let copy = failure.stored?.copy, copy.mayStandIn(failure.grounds, at: now) {
        self[index].standIn(flight.id, copy, at: now)
      }
      return self[index].fail(
        flight.id,
        with: failure.error,
        grounds: failure.grounds,
        memory: failure.memory,
        at: now
      )
    case .cancelled:
      return self[index].giveUp(flight.id)
    }
  }

  /// What those get who wait for a flight, given what was known before it ended, if it still counted.
  private func outcome(
    of ending: FetchEnding<Value>,
    standIn state: State?,
    at now: Nanoseconds
  ) -> Flight<Key, Value>.Outcome {
    switch ending {
    case .value(let value, _, _), .transient(let value):
      return .success(Answer(value: value, source: .fetch, storedAt: now))
    case .restored(let found, let renews):
      return .success(Answer(found.copy, source: .cacher, isStale: renews))
    case .failure(let failure):
      guard let state else { return .failure(failure.error) }
      let previous = state.mayUsePrevious ? failure.previous : nil
      let (copy, source): (StoredCopy<Value>?, Response<Value>.Source) =
        if let copy = state.copy ?? previous { (copy, .memory) } else {
          (failure.stored?.copy, .cacher)
        }
      guard let copy, copy.mayStandIn(failure.grounds, at: now) else {
        return .failure(failure.error)
      }
      return .success(Answer(copy, source: source, isStale: true, error: failure.error))
    case .cancelled(let error):
      return .failure(error)
    }
  }
}
