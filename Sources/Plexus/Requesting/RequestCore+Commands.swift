extension RequestCore {
  /// Stores a value from outside.
  func store(_ value: Value, for key: Key, hash: UInt64) {
    let now = time.now()
    let lifetime = lifetime()
    let policy = policy.whenUnobserved
    let cost = capacity.cost(of: value)
    let name = storage?.name(of: key)
    change(hash: hash) { stripe, aftermath in
      let index = stripe.place(of: key, hash: hash)
      stripe.store(
        value,
        at: index,
        whenUnobserved: policy,
        lifetime: lifetime,
        now: now,
        &aftermath
      )
      if let name {
        stripe.ledger?.noteValue(key, hash: hash, name: name, isNewest: true, &aftermath.notes)
      }
      aftermath.note(key) { .stored(key: $0) }
      stripe.keep(index, cost: cost, &aftermath)
    }
  }

  /// Notes that the value of a key has changed at its origin.
  func refresh(_ key: Key, hash: UInt64) -> RefreshTicket {
    let priority = Task.currentPriority
    let name = storage?.name(of: key)
    return change(hash: hash) { stripe, aftermath in
      let ticket = drawTicket()
      if let name { stripe.ledger?.refresh(name, at: wallClockTime()) }
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
      stripe.ledger?.refreshAll(at: wallClockTime())
      for index in stripe.keys.entries.indices {
        stripe.refresh(index, ticket, source: source, priority: priority)
      }
    }
    return ticket
  }

  /// Forgets a key, cuts its flights off, and sees to it that the stored copy of that name, if there is
  /// one, is not used any more.
  func cutOff(_ key: Key, hash: UInt64, name: String? = nil) {
    let policy = policy.whenUnobserved
    change(hash: hash) { stripe, aftermath in
      if let index = stripe.keys.index(of: key, hash: hash) {
        stripe.cutOff(index, whenUnobserved: policy, &aftermath)
        stripe.remove(at: index, &aftermath)
      }
      if let name { stripe.ledger?.remove(key, hash: hash, name: name, &aftermath.notes) }
      aftermath.note(key) { .cleared(key: $0) }
    }
  }

  /// Forgets a key, cuts its flights off, and removes its stored copy.
  ///
  /// - Throws: Why the copy may still be there.
  func clear(_ key: Key, hash: UInt64) async throws {
    let name = storage?.name(of: key)
    cutOff(key, hash: hash, name: name)
    if let name { try await removeStored(name) }
  }

  /// Forgets everything, cuts all flights off, and removes all stored copies.
  ///
  /// - Throws: Why some copies may still be there.
  func clear() async throws {
    cutOff()
    try await removeStored()
  }

  /// Forgets everything, and cuts all flights off.
  @usableFromInline
  func cutOff() {
    let policy = policy.whenUnobserved
    changeAll { stripe, aftermath in
      for index in stripe.keys.entries.indices {
        stripe.cutOff(index, whenUnobserved: policy, &aftermath)
      }
      stripe.forgetAll(&aftermath)
    }
    tell(.cleared(key: nil))
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
      stripe.forgetAll(&aftermath)
    }
    tell(.cleared(key: nil))
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
    var aftermath = makeAftermath()
    let result = stripes.withLock(hash: hash) { stripe in body(&stripe, &aftermath) }
    carryOut(aftermath)
    return result
  }

  /// Changes one stripe after the other; only then is carried out what they have left to be done.
  private func changeAll(
    _ body: (inout Stripe<Key, Value>, inout Aftermath<Key, Value>) -> Void
  ) {
    var aftermath = makeAftermath()
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
      if let predecessor = flight.mark.settle() { aftermath.predecessors.append(predecessor) }
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
      aftermath.launches.append(Launch(flight: flight))
    }
    if !hubs.isEmpty {
      publish(.unknown, keys.entries[index].key, keys.entries[index].hash, &aftermath)
    }
  }

  /// Forgets all values; keys with a flight stay for it.
  mutating func clearMemory(_ aftermath: inout Aftermath<Key, Value>) {
    let old = removeAll()
    for index in old.indices {
      let entry = old[index]
      depart(entry, &aftermath)
      guard !hubs.isEmpty || entry.element.running != nil else { continue }
      publish(.unknown, entry.key, entry.hash, &aftermath)
      guard entry.element.running != nil else { continue }
      var state = entry.element
      state.clearMemory()
      publish(insert(state, for: entry.key, hash: entry.hash), &aftermath)
    }
    aftermath.entries += old
  }

  /// Forgets all keys, whose flights were cut off, and sees to it that no stored copy is used any more.
  mutating func forgetAll(_ aftermath: inout Aftermath<Key, Value>) {
    aftermath.entries += removeAll()
    ledger?.removeAll(&aftermath.notes)
  }
}
