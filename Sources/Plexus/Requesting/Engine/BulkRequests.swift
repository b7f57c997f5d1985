// `unsafeDowncast` as in `KeyedCache`.

// MARK: - Requests of several keys

extension KeyedCache {
  /// Answers requests of several keys, after one wait for all that have no value.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - ticket: The newest refresh that the caller insists on.
  /// - Returns: The value or the error of each key.
  @inlinable
  func settle(
    _ keys: some Collection<Key>,
    ticket: RefreshTicket
  ) async -> [Key: Result<Value, any Error>] {
    var results: [Key: Result<Value, any Error>] = [:]
    results.reserveCapacity(keys.count)
    var pending: [Key] = []
    var places: [CacheEngine.PendingPlace] = []
    let scope = FlightScope.awaited
    var effects = makeEffects()
    for key in keys where results.index(forKey: key) == nil {
      let hash = hasher.hash(key)
      if let value = hit(key, hash: hash, ticket: ticket) {
        results[key] = .success(value)
        continue
      }
      switch admit(
        key,
        hash: hash,
        ticket: ticket,
        scope: scope,
        isBulk: bulkFetch != nil,
        &effects
      ) {
      case .answered(let outcome):
        results[key] = .success(outcome.value)
      case .failed(let error):
        results[key] = .failure(error)
      case .waits(let flight, let place):
        results[key] = .failure(CancellationError())
        do {
          if let scope { try enter(scope, waitingFor: flight, in: place) }
          pending.append(key)
          places.append(PendingPlace(flight: flight, place: place))
        } catch {
          results[key] = .failure(error)
        }
      }
    }
    effects.perform(in: self)
    guard !places.isEmpty else { return results }
    let outcomes = await wait(for: places, scope: scope)
    for index in pending.indices {
      let outcome = outcomes[index]
      switch outcome?.kind {
      case .value, .transient, .restored:
        if let outcome { results[pending[index]] = .success(valued(outcome).value) }
      case .failure, .cancelled:
        if let error = outcome?.error { results[pending[index]] = .failure(error) }
      case nil:
        break
      }
    }
    return results
  }
}

extension CacheEngine {
  /// A place in a flight that is waited for together with others.
  @usableFromInline
  struct PendingPlace: Sendable {
    let flight: Flight
    let place: WaitPlace

    @usableFromInline
    init(flight: Flight, place: WaitPlace) {
      self.flight = flight
      self.place = place
    }
  }

  /// Waits for several flights.
  ///
  /// - Returns: Their outcomes in the same order; `nil` for flights that had not ended when the caller was
  ///   cancelled.
  @usableFromInline
  final func wait(for places: [PendingPlace], scope: WaitNode?) async -> [Outcome?] {
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
      await withTaskPriorityEscalationHandler(
        operation: { await outcomes(of: places, scope: scope) },
        onPriorityEscalated: { _, priority in
          for place in places { place.flight.raise(to: priority) }
        }
      )
    } else {
      await outcomes(of: places, scope: scope)
    }
  }

  private final func outcomes(of places: [PendingPlace], scope: WaitNode?) async -> [Outcome?] {
    // It may have been raised since the flights were joined.
    let priority = Task.currentPriority
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
        // The caller waits in the first of these places that is left: it goes on when all are.
        for place in places.reversed() { self.leave(place.flight, place.place, scope: scope) }
      },
      isolation: #isolation
    )
  }
}

// MARK: - Fetches of several keys

extension KeyedCache {
  /// Launches several flights as one fetch.
  @inlinable
  func launchTogether(_ flights: [Flight], with bulkFetch: @escaping BulkFetch) {
    let batch = BulkFlight(flights)
    for flight in flights { flight.begin(in: batch) }
    if !flights.contains(where: \.readsFirst), let first = flights.first { countFetch(first) }
    batch.start { [self] in await fetchTogether(flights, in: batch, with: bulkFetch) }
  }

  /// Does the work of several flights: their stored copies, one fetch for the rest, its timeout and retries.
  ///
  /// Every flight ends, exactly once.
  @inlinable
  func fetchTogether(
    _ flights: [Flight],
    in batch: BulkFlight,
    with bulkFetch: @escaping BulkFetch
  ) async {
    defer { batch.end() }
    let copies = await readCopies(for: flights.filter(\.readsFirst))
    var launched: [Flight] = []
    var remaining: [Flight] = []
    for flight in flights {
      let copy = copies[ObjectIdentifier(flight)]
      if flight.isCancelled || flight.isSettled {
        // No caller waits for it any more.
        let outcome = Outcome(.cancelled, error: CancellationError())
        launched += finish(flight, with: outcome, isBulk: true)
      } else if let copy, isAnswer(copy, for: flight) {
        launched += finish(flight, with: copy, isBulk: true)
      } else {
        if let copy { flight.previous = copy }
        remaining.append(flight)
      }
    }
    // Stale copies are renewed at once.
    launch(launched)
    guard let first = remaining.first else { return }
    if flights.contains(where: \.readsFirst) { countFetch(first) }
    let keys = remaining.map { key(of: $0) }
    launched = []
    var failures = Failures()
    do {
      let values = try await attempts(of: batch) { _ in
        try await FlightScope.local.withValue(batch) { try await bulkFetch(keys) }
      }
      for flight in remaining {
        let key = key(of: flight)
        if let value = values[key] {
          launched += finish(flight, with: ValueOutcome(value), isBulk: true)
        } else {
          let error = MultiplexerError.missingKey("\(key)")
          launched += fail(flight, with: error, copies, &failures)
        }
      }
    } catch {
      for flight in remaining { launched += fail(flight, with: error, copies, &failures) }
    }
    launched += await finish(failures)
    launch(launched)
  }

  /// The flights of a fetch that have failed.
  @usableFromInline
  struct Failures: Sendable {
    /// Flights whose stored copy may be the answer, which has to be read first.
    fileprivate var waiting: [(flight: Flight, error: any Error, grounds: FallbackGrounds)] = []
    /// Whether the failure has been counted: that of a fetch of several keys counts once.
    fileprivate var isCounted = false

    @usableFromInline
    init() {}
  }

  /// Ends a flight that has failed, unless its stored copy has to be read first.
  @usableFromInline
  func fail(
    _ flight: Flight,
    with error: any Error,
    _ copies: [ObjectIdentifier: Outcome],
    _ failures: inout Failures
  ) -> [Flight] {
    let grounds = grounds(of: error)
    let copy = copies[ObjectIdentifier(flight)]
    if storage != nil, copy == nil, needsFallback(flight, grounds) {
      failures.waiting.append((flight, error, grounds))
      return []
    }
    let outcome = failure(error, grounds, of: flight, stored: copy, isRead: copy != nil)
    return finish(flight, with: outcome, &failures)
  }

  /// Ends the flights whose stored copies have to be read first, all at once.
  @usableFromInline
  func finish(_ failures: consuming Failures) async -> [Flight] {
    guard !failures.waiting.isEmpty else { return [] }
    let copies = await readCopies(for: failures.waiting.map(\.flight))
    var launched: [Flight] = []
    for (flight, error, grounds) in failures.waiting {
      let copy = copies[ObjectIdentifier(flight)]
      let outcome = failure(error, grounds, of: flight, stored: copy, isRead: false)
      launched += finish(flight, with: outcome, &failures)
    }
    return launched
  }

  private func finish(
    _ flight: Flight,
    with outcome: Outcome,
    _ failures: inout Failures
  ) -> [Flight] {
    defer { if outcome.kind == .failure { failures.isCounted = true } }
    return finish(flight, with: outcome, countsFailure: !failures.isCounted, isBulk: true)
  }
}
