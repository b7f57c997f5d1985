// `unsafeDowncast` as in `KeyedCache`.

// The work of flights of several keys, and of flights with a cacher. The flight of one key without a cacher takes the same
// steps in `CacheEngine`, which is not generic.

extension KeyedCache {
  /// Fetches the values of flights, as a part of a fetch of several keys if there is one.
  ///
  /// - Returns: The outcomes, in the order of the flights.
  /// - Throws: The error of all flights.
  @usableFromInline typealias Fetch =
    @concurrent @Sendable (_ flights: [Flight], _ batch: BulkFlight?) async throws -> [Outcome]

  /// Fetches the values of flights, and ends the flights.
  @inlinable
  func fetch(_ flights: [Flight], in batch: BulkFlight?, by fetch: Fetch) async {
    if let limit = source.limit {
      return await self.fetch(flights, in: batch, within: limit, by: fetch)
    }
    let outcomes: [Outcome]
    do {
      outcomes = try await fetch(flights, batch)
    } catch {
      outcomes = flights.map { _ in Outcome(.failure, error: error) }
    }
    await end(flights, with: outcomes, isBulk: batch != nil)
  }

  /// Ends flights; stored copies that can be the answers instead of errors are read first.
  ///
  /// - Parameters:
  ///   - flights: The flights.
  ///   - outcomes: The outcomes of their fetch, whose failure counts once.
  ///   - isBulk: Whether they are part of a fetch of several keys.
  ///   - countsFailure: Whether the failure counts.
  @inlinable
  func end(
    _ flights: [Flight],
    with outcomes: [Outcome],
    isBulk: Bool,
    countsFailure: Bool = true
  ) async {
    var launched: [Flight] = []
    var failures = Failures(isBulk: isBulk, isCounted: !countsFailure)
    for index in flights.indices {
      let (flight, outcome) = (flights[index], outcomes[index])
      let next =
        outcome.kind == .failure
        ? fail(flight, with: outcome, &failures)
        : finish(flight, with: outcome, isBulk: isBulk)
      if !next.isEmpty { launched += next }
    }
    launch(launched)
    if failures.hasUnread { await readFallbacks(failures) }
  }

  /// The flights of a fetch that have failed.
  @usableFromInline
  struct Failures: Sendable {
    let isBulk: Bool
    /// Whether the failure has been counted.
    var isCounted: Bool
    /// A flight whose stored copy can be the answer, and was not read.
    struct Unread: Sendable {
      let flight: Flight
      let error: any Error
      let grounds: ValueTerms.FallbackGrounds
    }

    var unread: [Unread] = []

    @usableFromInline
    init(isBulk: Bool, isCounted: Bool) {
      self.isBulk = isBulk
      self.isCounted = isCounted
    }

    @usableFromInline var hasUnread: Bool { !unread.isEmpty }
  }

  /// Ends a flight that has failed, unless its stored copy has to be read first.
  ///
  /// - Returns: The flights to launch.
  @usableFromInline
  func fail(_ flight: Flight, with outcome: Outcome, _ failures: inout Failures) -> [Flight] {
    let error = outcome.error ?? CancellationError()
    guard !flight.isCancelled else {
      return finish(flight, with: failure(error, of: flight), isBulk: failures.isBulk)
    }
    let failed = Failures.Unread(flight: flight, error: error, grounds: grounds(of: error))
    guard readsFallback(for: failed) else { return fail(failed, &failures) }
    failures.unread.append(failed)
    return []
  }

  private func fail(_ failed: Failures.Unread, _ failures: inout Failures) -> [Flight] {
    let outcome = failure(failed.error, of: failed.flight, on: failed.grounds)
    let counts = !failures.isCounted
    if outcome.kind == .failure { failures.isCounted = true }
    return finish(failed.flight, with: outcome, countsFailure: counts, isBulk: failures.isBulk)
  }

  /// Returns whether the stored copy of a flight has to be read, because it can be the answer instead of an error.
  private func readsFallback(for failed: Failures.Unread) -> Bool {
    storage != nil && shared == nil && failed.flight.plan.previous == nil
      && failed.grounds.policyAllows
  }

  /// Ends the flights whose stored copies have to be read first.
  @usableFromInline
  func readFallbacks(_ failures: Failures) async {
    var launched: [Flight] = []
    var rest = failures
    let unread = Dictionary(
      uniqueKeysWithValues: failures.unread.map { (ObjectIdentifier($0.flight), $0) }
    )
    await readCopies(for: failures.unread.map(\.flight)) { flight, copy in
      flight.note(readCopy: copy)
      guard let failed = unread[ObjectIdentifier(flight)] else { return }
      launched += fail(failed, &rest)
    }
    launch(launched)
  }
}

// MARK: - Fetches of several keys

extension KeyedCache {
  /// Launches several flights as one fetch.
  @inlinable
  func launchTogether(_ flights: [Flight], with bulkFetch: @escaping BulkFetch) {
    // Under a limit, flights depart when they have a place, or when their stored copies are the answers.
    let flights =
      source.delaysFlights && source.limit == nil ? depart(flights, isBulk: true) : flights
    if flights.isEmpty { return }
    let batch = BulkFlight(flights)
    batch.plan.inheritsTaskLocals =
      policy.inheritsTaskLocals && flights.contains { $0.plan.inheritsTaskLocals }
    for flight in flights { flight.begin(in: batch) }
    if let limit = source.limit, flights.allSatisfy(takesPlaceFirst) { limit.enter(batch) }
    batch.start { [self] in await fetchTogether(flights, in: batch, with: bulkFetch) }
  }

  /// Marks flights as departing, and ends flights that are no longer needed.
  ///
  /// - Parameters:
  ///   - flights: The flights.
  ///   - isBulk: Whether they are part of a fetch of several keys.
  /// - Returns: The flights to fetch.
  @inlinable
  func depart(_ flights: [Flight], isBulk: Bool) -> [Flight] {
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
        if shard[index].state.servesRefresh { flight.plan.takesStoredCopy = false }
        return true
      }
      // A detached flight is fetched for its callers only.
      let isWanted = flight.isNeeded && (isCurrent || flight.callerCount > 0)
      if isWanted { departing.append(flight) } else { launched += cancel(flight, isBulk: isBulk) }
    }
    launch(launched)
    return departing
  }

  /// Ends a flight without a result, because no caller waits for it anymore.
  ///
  /// - Returns: The flights to launch.
  @usableFromInline
  func cancel(_ flight: Flight, isBulk: Bool) -> [Flight] {
    finish(flight, with: Outcome(.cancelled, error: CancellationError()), isBulk: isBulk)
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
    let fetch: Fetch = { [self] flights, part in
      try await outcomes(of: flights, in: part ?? batch, with: bulkFetch)
    }
    if storage != nil {
      await fetchWithCacher(flights, scope: batch, by: fetch)
    } else {
      await self.fetch(flights, in: batch, by: fetch)
    }
    batch.end()
  }

  /// Calls the user's fetch, and counts its time.
  @inlinable
  func outcomes(
    of flights: [Flight],
    in batch: BulkFlight,
    with bulkFetch: @escaping BulkFetch
  ) async throws -> [Outcome] {
    defer {
      countTime(of: batch)
      for flight in flights {
        flight.attempt = flight.attempt.replaced(by: batch.attempt)
        if let start = batch.attemptTime { flight.noteAttempt(at: start) }
      }
    }
    let scope = batch.whole
    let outcome = try await attempts(of: batch) { [self] batch, number in
      // The callers of some keys can have left since the batch departed, or since the last attempt.
      let needed = flights.allSatisfy { $0.isNeeded } ? flights : flights.filter { $0.isNeeded }
      guard !needed.isEmpty else { return ValueOutcome(BulkValues<Key, Value>.values([:])) }
      if number == 1 { countFetch(batch, 1) }
      return ValueOutcome(try await fetchValues(of: keys(of: needed), for: scope, by: bulkFetch))
    }
    // The attempts return what the closure above has made.
    let values = unsafe unsafeDowncast(outcome, to: ValueOutcome<BulkValues<Key, Value>>.self).value
    return flights.map { Self.outcome(of: $0, in: values) }
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
}
