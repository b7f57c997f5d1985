extension KeyedCache {
  // MARK: - Hits

  /// Returns the value of a key, if it is fresh and satisfies the refresh that the caller requires.
  @inlinable
  func hit(_ key: Key, hash: UInt64, ticket: RefreshTicket) -> Value? {
    let now = time.now()
    guard usesCopies(at: now) else { return nil }
    return shards.withLock(hash: hash) {
      $0.hit(key, hash: hash, ticket: ticket, at: now, refreshAhead: refreshAhead)
    }
  }

  /// Returns the value of a key, fresh or stale.
  @inlinable
  func value(of key: Key, hash: UInt64) -> Value? {
    shards.withLock(hash: hash) { $0.value(of: key, hash: hash) }
  }

  /// Returns whether the value of a key is fresh and satisfies all refreshes.
  func hasFreshValue(of key: Key, hash: UInt64) -> Bool {
    let now = time.now()
    return usesCopies(at: now)
      && shards.withLock(hash: hash) { shard in
        guard let index = shard.keys.index(of: key, hash: hash), shard.hasValue(index) else {
          return false
        }
        return shard[index].state.isFresh(at: now)
      }
  }

  // MARK: - Requests

  /// Answers a request, and waits for a flight if there is no usable value.
  ///
  /// This is not a part of its callers: they are small enough to be inlined, so that a hit allocates no frame.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - ticket: The newest refresh that the caller requires.
  ///   - former: The refresh that it requires of a fetch, if that is an earlier one.
  /// - Returns: The value and its metadata.
  /// - Throws: The error of the fetch; a `CancellationError` if the caller's task is cancelled and
  ///   would have to wait; ``MultiplexerError/recursiveRequest(chain:)``.
  @inlinable
  @inline(never)
  func request(
    _ key: Key,
    hash: UInt64,
    ticket: RefreshTicket,
    former: RefreshTicket? = nil
  ) async throws -> ValueOutcome<Value> {
    let scope = WaitScope.awaited
    switch admit(key, hash: hash, ticket: ticket, scope: scope) {
    case .answered(let outcome):
      return outcome
    case .failed(let error):
      throw error
    case .overloaded:
      return try fallbackWhenOverloaded(key, hash: hash)
    case .waits(let flight, let place):
      let isSoft = ticket.isNone && policy.softTimeout != nil
      let outcome = try await wait(for: flight, in: place, scope: scope, isSoft: isSoft)
      if outcome.isOvertaken, flight.attempt.lastRefresh < (former ?? ticket).rawValue {
        return try await requestAgain(key, hash: hash, after: former ?? ticket)
      }
      return valued(outcome)
    }
  }

  /// Answers a request that requires a refresh, after a flight that began before it and whose value has one of its tags.
  @usableFromInline
  @inline(never)
  func requestAgain(
    _ key: Key,
    hash: UInt64,
    after ticket: RefreshTicket
  ) async throws -> ValueOutcome<Value> {
    try await request(key, hash: hash, ticket: drawTicket(), former: ticket)
  }

  /// Answers a request, or begins its wait for a flight.
  ///
  /// This is not a part of the asynchronous function: if inlined there, all its temporary values would be stored in
  /// the frame, of which there is one for each waiting caller.
  @inlinable
  @inline(never)
  func admit(
    _ key: Key,
    hash: UInt64,
    ticket: RefreshTicket,
    scope: WaitNode?
  ) -> Admission {
    var effects = makeEffects()
    let caller = Caller(scope, ticket: ticket, at: time.now())
    let admission = admit(key, hash: hash, caller, &effects)
    var recursion: MultiplexerError?
    if let scope, case .waits(let flight, let place) = admission {
      // The wait is recorded before the fetch begins, so that a request of the fetch itself completes a cycle.
      recursion = enter(scope, waitingFor: flight, in: place)
    }
    effects.perform(in: self)
    if let recursion { return .failed(recursion) }
    return admission
  }

  /// Answers a request with a value and its metadata.
  @inlinable
  func response(
    _ key: Key,
    hash: UInt64,
    ticket: RefreshTicket
  ) async throws -> Response<Value> {
    let now = time.now()
    let isTrusted = usesCopies(at: now)
    let hit = shards.withLock(hash: hash) { shard -> Response<Value>? in
      guard isTrusted,
        let index = shard.hitIndex(
          key,
          hash: hash,
          ticket: ticket,
          at: now,
          refreshAhead: refreshAhead
        ),
        let value = shard[index].value
      else { return nil }
      return Response(
        value: value,
        source: .memory,
        age: .nanoseconds(age(of: shard[index].state.storedAt, at: now))
      )
    }
    if let hit { return hit }
    let outcome = try await request(key, hash: hash, ticket: ticket)
    return Response(
      value: outcome.value,
      source: outcome.source,
      age: .nanoseconds(outcome.source == .fetch ? 0 : age(of: outcome.storedAt, at: time.now())),
      isStale: outcome.isStale,
      isRevalidated: outcome.source == .fetch && outcome.isRevalidated,
      error: outcome.error
    )
  }
}
