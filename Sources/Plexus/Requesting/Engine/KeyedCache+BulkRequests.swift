// MARK: - Requests of several keys

extension KeyedCache {
  /// Answers requests of several keys, after one wait for all that have no value.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - ticket: The newest refresh that the caller requires.
  ///   - former: The refresh that it requires of a fetch, if that is an earlier one.
  /// - Returns: The value or the error of each key.
  @inlinable
  func request(
    _ keys: some Collection<Key>,
    ticket: RefreshTicket,
    former: RefreshTicket? = nil
  ) async -> [Key: Result<Value, any Error>] {
    var results: [Key: Result<Value, any Error>] = [:]
    results.reserveCapacity(keys.count)
    let scope = WaitScope.awaited
    let (pending, places) = admit(keys, scope, ticket: ticket, &results)
    guard !places.isEmpty else { return results }
    let outcomes = await wait(for: places, scope: scope, isSoft: ticket.isNone)
    var overtaken: [Key] = []
    for index in pending.indices {
      let isOvertaken = outcomes[index]?.isOvertaken == true
      if isOvertaken, places[index].flight.attempt.lastRefresh < (former ?? ticket).rawValue {
        overtaken.append(pending[index])
      }
      results[pending[index]] = Result {
        guard let outcome = outcomes[index] else { throw CancellationError() }
        return valued(try outcome.get()).value
      }
    }
    if !overtaken.isEmpty {
      let again = await request(overtaken, ticket: drawTicket(), former: former ?? ticket)
      results.merge(again) { $1 }
    }
    return results
  }

  /// Answers requests of several keys, or begins their waits for flights.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - scope: The fetch or load that the caller works for.
  ///   - ticket: The newest refresh that the caller requires.
  ///   - results: Receives the answers.
  /// - Returns: The keys without an answer, and the places of the caller in their flights.
  @inlinable
  @inline(never)
  func admit(
    _ keys: some Collection<Key>,
    _ scope: WaitNode?,
    ticket: RefreshTicket,
    _ results: inout [Key: Result<Value, any Error>]
  ) -> (keys: [Key], places: [PendingPlace]) {
    var pending: (keys: [Key], places: [PendingPlace]) = ([], [])
    let now = time.now()
    let isTrusted = usesCopies(at: now)
    var caller: Caller?
    // The result of every key that has to be waited for, until it is known.
    var unknown: Result<Value, any Error>?
    var effects = makeEffects()
    for key in keys {
      // A duplicate key is requested once.
      fill(&results[key]) {
        let hash = hasher.hash(key)
        let value = shards.withLock(hash: hash) { shard in
          isTrusted
            ? shard.hit(key, hash: hash, ticket: ticket, at: now, refreshAhead: refreshAhead)
            : nil
        }
        if let value { return .success(value) }
        let known = caller ?? Caller(scope, ticket: ticket, isBulk: bulkFetch != nil, at: now)
        caller = known
        switch admit(key, hash: hash, known, &effects) {
        case .answered(let outcome):
          return .success(outcome.value)
        case .failed(let error):
          return .failure(error)
        case .overloaded:
          return Result { try fallbackWhenOverloaded(key, hash: hash).value }
        case .waits(let flight, let place):
          if let scope, let recursion = enter(scope, waitingFor: flight, in: place) {
            return .failure(recursion)
          }
          pending.keys.append(key)
          pending.places.append(PendingPlace(flight: flight, place: place))
          let result = unknown ?? .failure(CancellationError())
          unknown = result
          // A result for a key that is not equal to itself could not be replaced later.
          return key == key ? result : nil
        }
      }
    }
    effects.perform(in: self)
    return pending
  }

  /// Sets a dictionary value that is `nil`, with one look-up of the key.
  @inlinable
  @inline(__always)
  func fill(
    _ result: inout Result<Value, any Error>?,
    _ make: () -> Result<Value, any Error>?
  ) {
    if result == nil { result = make() }
  }
}

extension CacheEngine {
  /// A place in a flight that is waited for together with others.
  @usableFromInline
  struct PendingPlace: Sendable {
    @usableFromInline let flight: Flight
    let place: WaitPlace

    @usableFromInline
    init(flight: Flight, place: WaitPlace) {
      self.flight = flight
      self.place = place
    }
  }

  /// Waits for several flights.
  ///
  /// - Parameters:
  ///   - places: The places that the caller has taken.
  ///   - scope: The fetch or load that the caller works for.
  ///   - isSoft: Whether stale values are the answers once the soft timeout is over.
  /// - Returns: Their outcomes in the same order; `nil` for flights that had not ended when the caller was
  ///   cancelled.
  @usableFromInline
  final func wait(
    for places: [PendingPlace],
    scope: WaitNode?,
    isSoft: Bool
  ) async -> [Outcome?] {
    guard isSoft, let soft = softTimeout(places, scope) else {
      return await wait(for: places, scope: scope)
    }
    let outcomes = await wait(for: places, scope: scope)
    soft.timer.cancel()
    return outcomes.indices.map { outcomes[$0] ?? soft.answers[$0] }
  }

  private final func wait(for places: [PendingPlace], scope: WaitNode?) async -> [Outcome?] {
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
      await withTaskPriorityEscalationHandler(
        operation: { await outcomes(of: places, scope: scope) },
        onPriorityEscalated: { _, priority in
          for place in places { place.flight.raise(to: PriorityLevel(priority)) }
        }
      )
    } else {
      await outcomes(of: places, scope: scope)
    }
  }

  private final func outcomes(of places: [PendingPlace], scope: WaitNode?) async -> [Outcome?] {
    // It can have been raised since the flights were joined.
    let priority = PriorityLevel.current
    for place in places { place.flight.raise(to: priority) }
    return await withTaskCancellationHandler(
      operation: {
        var outcomes: [Outcome?] = []
        outcomes.reserveCapacity(places.count)
        for place in places {
          let outcome = await place.flight.park(in: place.place)
          if outcome != nil, let scope { WaitGraph.stopWaiting(scope, for: place.flight) }
          outcomes.append(outcome)
        }
        return outcomes
      },
      onCancel: {
        // The caller waits in the first of these places, which is left last: it resumes when all are left.
        for place in places.reversed() { self.leave(place.flight, place.place, scope: scope) }
      },
      isolation: #isolation
    )
  }
}
