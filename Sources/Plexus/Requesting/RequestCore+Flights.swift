extension RequestCore {
  /// Launches a flight: from here on it ends by itself, exactly once.
  func launch(_ launch: Launch<Key, Value>) {
    let flight = launch.flight
    flight.mark.forgetPredecessor()
    flight.work.start { [self] in
      finish(flight, with: await FetchRun(core: self, launch: launch).outcome())
    }
  }

  /// A flight has ended.
  private func finish(_ flight: Flight<Key, Value>, with ending: FetchEnding<Value>) {
    flight.work.finish()
    let now = time.now()
    var aftermath = Aftermath<Key, Value>()
    let outcome = stripes.withLock(hash: flight.hash) { stripe in
      stripe.finish(flight, with: ending, at: now, &aftermath)
    }
    aftermath.settles.append((flight, outcome))
    carryOut(aftermath)
  }
}

/// How a fetch has ended.
enum FetchEnding<Value: Sendable>: Sendable {
  case value(Value, validator: String?, lifetime: FlightState<Value>.Lifetime)
  /// Whether the value that there is may stand in, and how long the failure is remembered.
  case failure(any Error, usesValue: Bool, memory: Nanoseconds)
  /// It was cancelled, or gave up by itself, with this error.
  case cancelled(any Error)
}

extension Stripe {
  /// A flight has ended.
  ///
  /// - Returns: What those get who wait for it.
  mutating func finish(
    _ flight: Flight<Key, Value>,
    with ending: FetchEnding<Value>,
    at now: Nanoseconds,
    _ aftermath: inout Aftermath<Key, Value>
  ) -> Flight<Key, Value>.Outcome {
    if case .failure = ending { statistics.failures += 1 }
    removeFlight(flight.id, &aftermath)
    guard let index = keys.index(of: flight.key, hash: flight.hash),
      self[index].running == flight.id
    else { return outcome(of: ending, standIn: nil, at: now) }

    let before = self[index]
    aftermath.states.append(before)
    let effects: State.EndEffects
    switch ending {
    case .value(let value, let validator, let lifetime):
      effects = self[index].succeed(
        flight.id,
        with: value,
        validator: validator,
        lifetime: lifetime,
        at: now
      )
    case .failure(let error, let usesValue, let memory):
      effects = self[index].fail(
        flight.id,
        with: error,
        usesValue: usesValue,
        memory: memory,
        at: now
      )
    case .cancelled:
      effects = self[index].giveUp(flight.id)
    }
    if effects.startsFlight != nil {
      publish(self[index].restingState, flight.key, flight.hash, &aftermath)
    }
    ended(index, startsFlight: effects.startsFlight, &aftermath)
    if case .failure = ending { noteFailure(at: now, &aftermath) }
    return outcome(of: ending, standIn: before, at: now)
  }

  /// What those get who wait for a flight.
  private func outcome(
    of ending: FetchEnding<Value>,
    standIn: State?,
    at now: Nanoseconds
  ) -> Flight<Key, Value>.Outcome {
    switch ending {
    case .value(let value, _, _):
      return .success(Answer(value: value, source: .fetch, storedAt: now))
    case .failure(let error, let usesValue, _):
      guard usesValue, let standIn, let value = standIn.value else { return .failure(error) }
      return .success(
        Answer(
          value: value,
          source: .memory,
          storedAt: standIn.storedAt,
          isStale: true,
          error: error
        )
      )
    case .cancelled(let error):
      return .failure(error)
    }
  }
}
