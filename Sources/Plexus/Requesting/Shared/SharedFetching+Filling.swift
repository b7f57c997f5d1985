extension SharedFetching {
  /// The number of values of one fetch that are stored at the same time.
  private static var fillWidth: Int { 128 }

  /// A fetch that has to begin.
  struct Part: Sendable {
    let flights: [Flight]
    let run: @Sendable (BulkFlight?) async -> Void
  }

  /// Returns the fetches after a round of looks: one under leases, and one without the shared tier.
  func fetches(of round: Round) -> [Part] {
    var parts: [Part] = []
    if !round.granted.isEmpty {
      parts.append(
        Part(flights: round.granted.map(\.flight)) { await fetch(round.granted, in: $0) }
      )
    }
    if !round.alone.isEmpty {
      parts.append(
        Part(flights: round.alone.map(\.flight)) { await fetchAlone(round.alone, in: $0) }
      )
    }
    return parts
  }

  // MARK: - Without the tier

  /// Fetches without the shared tier, for the current callers.
  private func fetchAlone(_ items: [Item], in batch: BulkFlight?) async {
    for item in items { item.flight.plan.previous = nil }
    let flights = items.map(\.flight)
    let outcomes: [Outcome]
    do {
      outcomes = try await fetch(flights, batch)
    } catch {
      return await fail(flights, because: error)
    }
    for (item, outcome) in zip(items, outcomes) where outcome.kind != .failure {
      if outcome.isNew { keepAlone(item) }
      finish(item.flight, with: outcome)
    }
    await fail(flights, with: outcomes)
  }

  /// Records that the value of a flight was fetched without the shared tier.
  private func keepAlone(_ item: Item) {
    // The value is looked up again before it is used again, unless the engine cannot be reached and values are kept.
    if !shared.keepsValue() { item.watch.note() }
    goAhead(item.name)
    shared.note(nil, of: item.name)
    // The other processes have older values than the one that was stored here.
    if cache.forgetChange(item.flight) { shared.withDebts { $0.outdates.owe([item.name]) } }
  }

  // MARK: - Under leases

  /// Fetches under leases.
  private func fetch(_ granted: [Granted], in batch: BulkFlight?) async {
    let flights = granted.map(\.flight)
    let outcomes: [Outcome]
    do {
      outcomes = try await fetch(flights, batch)
    } catch {
      await release(granted, because: error)
      return await fail(flights, because: error)
    }
    if granted.count == 1 {
      await fill(outcomes[0], of: granted[0])
    } else {
      await withTaskGroup(of: Void.self) { group in
        for (number, item) in granted.enumerated() {
          // A cacher is not given all values at once, however many they are.
          if number >= Self.fillWidth { await group.next() }
          group.addTask { await fill(outcomes[number], of: item) }
        }
      }
    }
    await fail(flights, with: outcomes)
  }

  /// Stores the result of a fetch in the shared tier, or releases the lease, and ends the flight unless it has failed.
  private func fill(_ outcome: Outcome, of item: Granted) async {
    let (flight, lease) = (item.flight, item.lease)
    guard outcome.kind == .value else {
      await release([item], because: outcome.error)
      if outcome.kind != .failure { finish(flight, with: outcome) }
      return
    }
    let value = cache.valued(outcome)
    var entry = CacheEntry(value, age: .zero, at: wallClockTime())
    entry.tags = cache.tagging?(cache.key(of: flight)) ?? []
    entry.usableTime = cache.usableTime(value.terms)
    do {
      switch try await completing({ [entry] in try await shared.cacher.fill(entry, under: lease) })
      {
      case .stored:
        shared.withDebts { $0.catchUp(lease.key) }
        shared.note(lease.version, of: lease.key)
      case .refused(let reason):
        // Entries of the tier are older, and the copy is as good as one that the tier has.
        if let reason { cache.reportCacherFailures([lease.key: reason]) }
        goAhead(lease.key)
        shared.note(nil, of: lease.key)
      case .cleared, .superseded:
        // The result is for the current callers. The entry of the tier, if any, is newer, unless it was stored before
        // this fetch began, which has lost its lease before.
        goAhead(lease.key, of: flight.attemptTime ?? .min)
        outcome.kind = .transient
        outcome.isOutdated = true
      }
    } catch {
      cache.reportCacherFailures([lease.key: error])
      goAhead(lease.key)
      shared.note(nil, of: lease.key)
      if !shared.keepsValue() { shared.watch(of: flight)?.note() }
    }
    shared.noteOwnChanges([flight])
    finish(flight, with: outcome)
  }

  /// Releases leases without values.
  private func release(_ granted: [Granted], because error: (any Error)?) async {
    let flights = granted.map(\.flight)
    let isCancelled = error is CancellationError || flights.allSatisfy(\.isCancelled)
    let failure = isCancelled ? nil : error.map { SharedCache.Failure($0) }
    try? await completing {
      await shared.cacher.release(granted.map(\.lease), because: failure)
      // Also if the call has lasted longer than the flights have waited for it.
      shared.noteOwnChanges(flights)
    }
  }

  /// Calls the cacher, even if the current task is cancelled.
  private func completing<Result: Sendable>(
    _ operation: @escaping @concurrent @Sendable () async throws -> Result
  ) async throws -> Result {
    try await Task.detached { [storage] in try await storage.calls.run(.fill, operation) }.value
  }
}
