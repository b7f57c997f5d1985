extension RequestCore {
  /// Stores a value from outside.
  func store(_ value: Value, for key: Key, hash: UInt64) {
    let now = time.now()
    let lifetime = lifetime()
    let policy = policy.whenUnobserved
    change(hash: hash) { stripe, aftermath in
      stripe.store(
        value,
        at: stripe.place(of: key, hash: hash),
        whenUnobserved: policy,
        lifetime: lifetime,
        now: now,
        &aftermath
      )
    }
  }

  /// Notes that the value of a key has changed at its origin.
  func refresh(_ key: Key, hash: UInt64) -> RefreshTicket {
    let priority = Task.currentPriority
    return change(hash: hash) { stripe, aftermath in
      let ticket = drawTicket()
      if let index = stripe.keys.index(of: key, hash: hash) {
        stripe.refresh(index, ticket, source: source, priority: priority)
      }
      return ticket
    }
  }

  /// Notes that every value has changed at its origin.
  func refreshAll() -> RefreshTicket {
    let priority = Task.currentPriority
    let ticket = drawTicket()
    changeAll { stripe, aftermath in
      for index in stripe.keys.entries.indices {
        stripe.refresh(index, ticket, source: source, priority: priority)
      }
    }
    return ticket
  }

  /// Forgets a key, and cuts its flights off.
  func cutOff(_ key: Key, hash: UInt64) {
    let policy = policy.whenUnobserved
    change(hash: hash) { stripe, aftermath in
      if let index = stripe.keys.index(of: key, hash: hash) {
        stripe.cutOff(index, whenUnobserved: policy, &aftermath)
        aftermath.entries.append(stripe.keys.remove(at: index))
      }
    }
  }

  /// Forgets everything, and cuts all flights off.
  @usableFromInline
  func cutOff() {
    let policy = policy.whenUnobserved
    changeAll { stripe, aftermath in
      for index in stripe.keys.entries.indices {
        stripe.cutOff(index, whenUnobserved: policy, &aftermath)
      }
      aftermath.entries += stripe.keys.removeAll()
    }
  }

  /// Forgets everything, and keeps nothing of what begins until it is released.
  @usableFromInline
  func hold() {
    let policy = policy.whenUnobserved
    changeAll { stripe, aftermath in
      stripe.holds += 1
      for index in stripe.keys.entries.indices {
        stripe.cutOff(index, whenUnobserved: policy, &aftermath)
      }
      aftermath.entries += stripe.keys.removeAll()
    }
  }

  /// Keeps what begins from now on.
  @usableFromInline
  func release() {
    changeAll { stripe, _ in stripe.holds -= 1 }
  }

  /// Forgets everything in memory; flights go on.
  @usableFromInline
  func clearMemory() {
    changeAll { stripe, aftermath in stripe.clearMemory(&aftermath) }
  }

  // MARK: - Locking

  private func change<Result>(
    hash: UInt64,
    _ body: (inout Stripe<Key, Value>, inout Aftermath<Key, Value>) -> Result
  ) -> Result {
    var aftermath = Aftermath<Key, Value>()
    let result = stripes.withLock(hash: hash) { stripe in body(&stripe, &aftermath) }
    carryOut(aftermath)
    return result
  }

  /// Changes one stripe after the other; only then is carried out what they have left to be done.
  private func changeAll(
    _ body: (inout Stripe<Key, Value>, inout Aftermath<Key, Value>) -> Void
  ) {
    var aftermath = Aftermath<Key, Value>()
    stripes.withEachLock { stripe in body(&stripe, &aftermath) }
    carryOut(aftermath)
  }
}

extension Stripe {
  /// A value comes from outside.
  ///
  /// Those who wait for a fetch get it, too.
  mutating func store(
    _ value: Value,
    at index: Int,
    whenUnobserved policy: UnobservedFetch,
    lifetime: State.Lifetime,
    now: Nanoseconds,
    _ aftermath: inout Aftermath<Key, Value>
  ) {
    aftermath.states.append(self[index])
    let effects = self[index].store(value, lifetime: lifetime, at: now)
    let answer = Answer(value: value, source: .memory, storedAt: now)
    for id in [effects.cutsOff, effects.drops] {
      guard let flight = removeFlight(id, &aftermath) else { continue }
      aftermath.settles.append((flight, .success(answer)))
      if policy == .cancel { aftermath.cancels.append(flight) }
    }
    publish(index, &aftermath)
  }

  /// The value at a place has changed at its origin.
  mutating func refresh(
    _ index: Int,
    _ ticket: RefreshTicket,
    source: FlightSource,
    priority: TaskPriority
  ) {
    guard self[index].refresh(ticket, next: nextFlight) else { return }
    let entry = keys.entries[index]
    _ = makeFlight(
      for: entry.key,
      hash: entry.hash,
      source: source,
      priority: priority,
      predecessor: entry.element.running.flatMap { flights[$0]?.mark }
    )
  }

  /// Cuts off what is under way at a place, which the caller removes.
  mutating func cutOff(
    _ index: Int,
    whenUnobserved policy: UnobservedFetch,
    _ aftermath: inout Aftermath<Key, Value>
  ) {
    let effects = self[index].cut
    if let flight = removeFlight(effects.cutsOff, &aftermath) {
      if policy == .cancel, flight.waiters.count == 0 { aftermath.cancels.append(flight) }
    }
    // Those who wait for a flight that has not begun get its result, which is stored nowhere.
    if let flight = removeFlight(effects.drops, &aftermath), flight.waiters.count > 0 {
      launch(Launch(flight: flight), &aftermath)
    }
    if !hubs.isEmpty {
      publish(.unknown, keys.entries[index].key, keys.entries[index].hash, &aftermath)
    }
  }

  /// Forgets all values; keys with a flight stay for it.
  mutating func clearMemory(_ aftermath: inout Aftermath<Key, Value>) {
    let old = keys.removeAll()
    for index in old.indices where !hubs.isEmpty || old[index].element.running != nil {
      let entry = old[index]
      publish(.unknown, entry.key, entry.hash, &aftermath)
      guard entry.element.running != nil else { continue }
      var state = entry.element
      state.clearMemory()
      publish(keys.insert(state, for: entry.key, hash: entry.hash), &aftermath)
    }
    aftermath.entries += old
  }
}
