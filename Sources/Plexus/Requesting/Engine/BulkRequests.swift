// `unsafeDowncast` as in `KeyedCache`.

// MARK: - Requests of several keys

extension KeyedCache {
  /// Answers requests of several keys, after one wait for all that have no value.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - ticket: The newest refresh that the caller requires.
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
    let scope = WaitScope.awaited
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
        let known = caller ?? Caller(scope, isBulk: bulkFetch != nil, at: now)
        caller = known
        switch admit(key, hash: hash, ticket: ticket, known, &effects) {
        case .answered(let outcome):
          return .success(outcome.value)
        case .failed(let error):
          return .failure(error)
        case .waits(let flight, let place):
          if let scope, let recursion = enter(scope, waitingFor: flight, in: place) {
            return .failure(recursion)
          }
          pending.append(key)
          places.append(PendingPlace(flight: flight, place: place))
          let result = unknown ?? .failure(CancellationError())
          unknown = result
          // A result for a key that is not equal to itself could not be replaced later.
          return key == key ? result : nil
        }
      }
    }
    effects.perform(in: self)
    guard !places.isEmpty else { return results }
    let outcomes = await wait(for: places, scope: scope, isSoft: ticket.isNone)
    for index in pending.indices {
      let outcome = outcomes[index]
      switch outcome?.kind {
      case .value, .transient, .restored:
        if let outcome { results[pending[index]] = .success(valued(outcome).value) }
      case .failure, .cancelled:
        if let error = outcome?.error { results[pending[index]] = .failure(error) }
      case nil:
        results[pending[index]] = .failure(CancellationError())
      }
    }
    return results
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
          for place in places { place.flight.raise(to: priority) }
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

// MARK: - Fetches of several keys

extension KeyedCache {
  /// Launches several flights as one fetch.
  @inlinable
  func launchTogether(_ flights: [Flight], with bulkFetch: @escaping BulkFetch) {
    let flights = source.delaysFlights ? depart(flights) : flights
    if flights.isEmpty { return }
    let batch = BulkFlight(flights)
    batch.inheritsTaskLocals =
      policy.inheritsTaskLocals && flights.contains { $0.inheritsTaskLocals }
    for flight in flights { flight.begin(in: batch) }
    batch.start { [self] in await fetchTogether(flights, in: batch, with: bulkFetch) }
  }

  /// Returns whether stored copies are read before the fetch of several flights.
  @inlinable
  func readsFirst(_ flights: [Flight]) -> Bool {
    storage != nil && flights.contains { $0.readsFirst }
  }

  /// Marks several flights as departing, and ends flights that are no longer needed.
  ///
  /// - Returns: The flights to fetch.
  @inlinable
  func depart(_ flights: [Flight]) -> [Flight] {
    var departing: [Flight] = []
    departing.reserveCapacity(flights.count)
    var launched: [Flight] = []
    for flight in flights {
      let key = key(of: flight)
      let isCurrent = shards.withLock(hash: flight.hash) { shard in
        guard let index = shard.keys.index(of: key, hash: flight.hash),
          shard[index].state.running === flight
        else { return false }
        shard[index].state.depart()
        // A refresh can have come since the launch.
        if shard[index].state.servesRefresh { flight.takesStoredCopy = false }
        return true
      }
      // A detached flight is fetched for its callers only.
      let isWanted = flight.isNeeded && (isCurrent || flight.callerCount > 0)
      if isWanted {
        departing.append(flight)
      } else {
        let outcome = Outcome(.cancelled, error: CancellationError())
        launched += finish(flight, with: outcome, isBulk: true)
      }
    }
    launch(launched)
    return departing
  }

  /// Returns the keys of flights without duplicates: a key that was cleared before its batch departs has several
  /// flights.
  @inlinable
  func keys(of flights: [Flight]) -> [Key] {
    let keys = flights.map { key(of: $0) }
    guard source.delaysFlights else { return keys }
    var known = Set<Key>(minimumCapacity: keys.count)
    return keys.filter { known.insert($0).inserted }
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
    if let link, let storage {
      await fetchShared(flights, in: batch, by: link, storage, with: bulkFetch)
    } else if readsFirst(flights) {
      await readAndFetch(flights, in: batch) { flights, copies in
        await self.fetch(flights, copies, in: batch, with: bulkFetch)
      }
    } else {
      await fetch(flights, [:], in: batch, with: bulkFetch)
    }
    batch.end()
  }

  /// Fetches the values of several flights.
  ///
  /// - Parameters:
  ///   - flights: The flights.
  ///   - copies: The stored copies that were read before.
  ///   - batch: The fetch that they are part of.
  ///   - bulkFetch: The user's fetch.
  @inlinable
  func fetch(
    _ flights: [Flight],
    _ copies: [ObjectIdentifier: Outcome],
    in batch: BulkFlight,
    with bulkFetch: @escaping BulkFetch
  ) async {
    var launched: [Flight] = []
    var failures = Failures()
    do {
      let values = try await values(of: flights, in: batch, with: bulkFetch)
      for flight in flights {
        do {
          let next = finish(flight, with: try outcome(of: flight, in: values), isBulk: true)
          if !next.isEmpty { launched += next }
        } catch {
          launched += fail(flight, with: error, copies, &failures)
        }
      }
    } catch {
      for flight in flights { launched += fail(flight, with: error, copies, &failures) }
    }
    launch(launched)
    await finish(failures)
  }

  /// Calls the user's fetch, and counts its time.
  @inlinable
  func values(
    of flights: [Flight],
    in batch: BulkFlight,
    with bulkFetch: @escaping BulkFetch
  ) async throws -> BulkValues<Key, Value> {
    defer {
      countTime(of: batch)
      for flight in flights {
        flight.duration = batch.duration
        flight.fetchStart = batch.fetchStart
        flight.startTime = batch.startTime
        flight.confirmationCount = batch.confirmationCount
      }
    }
    let scope = batch.whole ?? batch
    let outcome = try await attempts(of: batch) { [self] batch, number in
      // The callers of some keys can have left since the batch departed, or since the last attempt.
      let needed = flights.allSatisfy { $0.isNeeded } ? flights : flights.filter { $0.isNeeded }
      guard !needed.isEmpty else { return ValueOutcome(BulkValues<Key, Value>.values([:])) }
      if number == 1 { countFetch(batch) }
      let keys = keys(of: needed)
      return ValueOutcome(
        try await WaitScope.local.withValue(scope) { try await bulkFetch(keys) }
      )
    }
    // The attempts return what the closure above has made.
    return unsafe unsafeDowncast(outcome, to: ValueOutcome<BulkValues<Key, Value>>.self).value
  }

  /// Returns the outcome of one key of a fetch.
  ///
  /// - Throws: The error of the key; ``MultiplexerError/missingKey(_:)`` if the fetch has returned nothing for it.
  @inlinable
  func outcome(
    of flight: Flight,
    in values: BulkValues<Key, Value>
  ) throws -> Outcome {
    let key = key(of: flight)
    if let outcome = try values.outcome(of: key, renewing: flight.previous.map(valued)) {
      return outcome
    }
    // The key was left out, because no caller needs its value.
    guard flight.isNeeded else { return Outcome(.cancelled, error: CancellationError()) }
    throw MultiplexerError.missingKey("\(key)")
  }

  /// Reads the stored copies of several flights, and fetches the rest.
  ///
  /// A flight with a fresh copy ends at once. The fetch begins when all copies are known; after a short while it
  /// begins without the copies that are still being read, which are then fetched together.
  @usableFromInline
  func readAndFetch(
    _ flights: [Flight],
    in batch: BulkFlight,
    _ fetch: @escaping @concurrent @Sendable ([Flight], [ObjectIdentifier: Outcome]) async -> Void
  ) async {
    if let start = storage?.fetchStart { for flight in flights { flight.fetchStart = start } }
    let departure = BulkDeparture(flights.filter { !$0.readsFirst })
    let depart: @concurrent @Sendable () async -> Void = { [self] in
      let rest = departure.takeRest()
      var launched = rest.renewals
      var remaining: [Flight] = []
      for flight in flights where rest.flights.contains(ObjectIdentifier(flight)) {
        if !flight.isNeeded {
          // No caller waits for it anymore.
          let outcome = Outcome(.cancelled, error: CancellationError())
          launched += finish(flight, with: outcome, isBulk: true)
        } else {
          remaining.append(flight)
        }
      }
      launch(launched)
      if !remaining.isEmpty { await fetch(remaining, rest.copies) }
    }
    let early = OneShot<Task<Void, Never>>()
    let timer = clock.timer(BulkDeparture.patience) {
      if departure.beginEarly() { early.set(batch.start(depart)) }
    }
    await readCopies(for: flights.filter(\.readsFirst)) { flight, copy in
      if flight.isNeeded, let copy, isAnswer(copy, for: flight) {
        departure.renew(finish(flight, with: copy, isBulk: true))
      } else {
        if let copy {
          flight.previous = copy
          flight.note(readCopy: copy)
        }
        departure.add(flight, copy)
      }
    }
    timer.cancel()
    let hasBegun = departure.hasBegunEarly()
    await depart()
    if hasBegun { await early.value().value }
  }

  /// The flights of a fetch that have failed.
  @usableFromInline
  struct Failures: Sendable {
    /// Flights whose stored copy can be the answer, and has to be read first.
    fileprivate var waiting:
      [(flight: Flight, error: any Error, grounds: ValueTerms.FallbackGrounds)] = []
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

  /// Ends the flights whose stored copies have to be read first.
  @usableFromInline
  func finish(_ failures: consuming Failures) async {
    guard !failures.waiting.isEmpty else { return }
    var failures = failures
    var launched: [Flight] = []
    let waiting = Dictionary(
      uniqueKeysWithValues: failures.waiting.map { (ObjectIdentifier($0.flight), $0) }
    )
    await readCopies(for: failures.waiting.map(\.flight)) { flight, copy in
      guard let (_, error, grounds) = waiting[ObjectIdentifier(flight)] else { return }
      let outcome = failure(error, grounds, of: flight, stored: copy, isRead: false)
      launched += finish(flight, with: outcome, &failures)
    }
    launch(launched)
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

extension CacheEngine {
  /// The flights of a fetch of several keys that have no stored copy for an answer, as they become known.
  fileprivate final class BulkDeparture: Sendable {
    /// The time that the fetch waits for stored copies.
    static var patience: Duration { .milliseconds(50) }

    struct Rest: Sendable {
      var flights: Set<ObjectIdentifier> = []
      var copies: [ObjectIdentifier: Outcome] = [:]
      /// Flights that renew stale copies.
      var renewals: [Flight] = []
    }

    private struct State: Sendable {
      var rest = Rest()
      var hasBegunEarly = false
      var isOver = false
    }

    private let state: Locked<State>

    init(_ flights: [Flight]) {
      state = Locked(State(rest: Rest(flights: Set(flights.map { ObjectIdentifier($0) }))))
    }

    func add(_ flight: Flight, _ copy: Outcome?) {
      state.withLock { state in
        state.rest.flights.insert(ObjectIdentifier(flight))
        if let copy { state.rest.copies[ObjectIdentifier(flight)] = copy }
      }
    }

    func renew(_ flights: [Flight]) {
      guard !flights.isEmpty else { return }
      state.withLock { $0.rest.renewals += flights }
    }

    func takeRest() -> Rest {
      state.withLock { state in
        let rest = state.rest
        state.rest = Rest()
        return rest
      }
    }

    /// Marks the fetch as begun without the copies that are still being read, unless there are none.
    func beginEarly() -> Bool {
      state.withLock { state in
        if !state.isOver { state.hasBegunEarly = true }
        return !state.isOver
      }
    }

    /// Returns whether the fetch has begun early, and prevents it from now on.
    func hasBegunEarly() -> Bool {
      state.withLock { state in
        state.isOver = true
        return state.hasBegunEarly
      }
    }
  }
}
