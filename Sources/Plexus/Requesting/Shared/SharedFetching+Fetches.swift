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
    for item in items { item.flight.previous = nil }
    let outcomes: [Outcome]
    do {
      outcomes = try await fetch(items.map(\.flight), batch)
    } catch {
      return end(items.map { ($0.flight, $0.flight.readCopy) }, because: error)
    }
    for (item, outcome) in zip(items, outcomes) {
      finish(item.flight, with: endAlone(item, with: outcome))
    }
  }

  /// Returns the outcome of a flight that was fetched without the shared tier.
  private func endAlone(_ item: Item, with outcome: Outcome) -> Outcome {
    if outcome.kind == .failure, let error = outcome.error {
      return failure(error, of: item.flight, stored: item.flight.readCopy)
    }
    guard outcome.isNew else { return outcome }
    // The value is looked up again before it is used again, unless the engine cannot be reached and values are kept.
    if !link.keepsValue() { item.watch.note() }
    goAhead(item.name)
    link.note(nil, of: item.name)
    cache.forgetChange(item.flight)
    return outcome
  }

  /// Ends flights whose fetch has failed, which counts once.
  private func end(_ flights: [(flight: Flight, stored: Outcome?)], because error: any Error) {
    for (index, item) in flights.enumerated() {
      finish(
        item.flight,
        with: failure(error, of: item.flight, stored: item.stored),
        countsFailure: index == 0
      )
    }
  }

  /// Returns the outcome of a flight whose attempts have failed: an older value is no answer if the engine was not heard
  /// for too long.
  func failure(_ error: any Error, of flight: Flight, stored: Outcome?) -> Outcome {
    cache.distrustIfExpired(cache.key(of: flight), hash: flight.hash)
    let isUsable =
      !link.trust.hasExpired
      || link.trust.keepsCopy(from: stored?.storedAt ?? .min, at: cache.time.now())
    return cache.failure(
      error,
      cache.grounds(of: error),
      of: flight,
      stored: isUsable ? stored : nil,
      isRead: true
    )
  }

  // MARK: - Under leases

  /// Fetches under leases.
  private func fetch(_ granted: [Granted], in batch: BulkFlight?) async {
    let outcomes: [Outcome]
    do {
      outcomes = try await fetch(granted.map(\.flight), batch)
    } catch {
      await release(granted.map(\.lease), of: granted.map(\.flight), because: error)
      return end(granted.map { ($0.flight, $0.previous) }, because: error)
    }
    guard granted.count > 1 else { return await handOver(outcomes[0], of: granted[0]) }
    await withTaskGroup(of: Void.self) { group in
      for (number, item) in granted.enumerated() {
        // A cacher is not given all values at once, however many they are.
        if number >= Self.fillWidth { await group.next() }
        group.addTask { await handOver(outcomes[number], of: item) }
      }
    }
  }

  /// Stores the result of a fetch in the shared tier, or releases the lease, and ends the flight.
  private func handOver(_ outcome: Outcome, of item: Granted) async {
    let (flight, lease) = (item.flight, item.lease)
    guard outcome.kind == .value else {
      await release([lease], of: [flight], because: outcome.error)
      let isFailure = outcome.kind == .failure
      return finish(
        flight,
        with: isFailure
          ? failure(outcome.error ?? CancellationError(), of: flight, stored: item.previous)
          : outcome
      )
    }
    let value = cache.valued(outcome)
    var entry = CacheEntry(value, age: .zero, at: wallClockTime())
    entry.tags = cache.tagging?(cache.key(of: flight)) ?? []
    entry.usableTime = cache.usableTime(value.terms)
    do {
      switch try await completing({ [entry] in try await link.cacher.fill(entry, under: lease) }) {
      case .stored:
        link.withDebts { $0.catchUp(lease.key) }
        link.note(lease.version, of: lease.key)
      case .refused(let reason):
        // Entries of the tier are older, and the copy is as good as one that the tier has.
        if let reason { cache.noteCacherError([lease.key: reason]) }
        goAhead(lease.key)
        link.note(nil, of: lease.key)
      case .cleared, .superseded:
        // The result is for the current callers. The entry of the tier, if any, is newer, unless it was stored before
        // this fetch began, which has lost its lease before.
        goAhead(lease.key, of: flight.startTime ?? .min)
        outcome.kind = .transient
        outcome.isOutdated = true
      }
    } catch {
      cache.noteCacherError([lease.key: error])
      goAhead(lease.key)
      link.note(nil, of: lease.key)
      if !link.keepsValue() { link.watch(of: flight)?.note() }
    }
    link.noteOwnChanges([flight])
    finish(flight, with: outcome)
  }

  /// Releases leases without values.
  private func release(
    _ leases: [SharedCache.Lease],
    of flights: [Flight],
    because error: (any Error)?
  ) async {
    let isCancelled = error is CancellationError || flights.allSatisfy(\.isCancelled)
    let failure = isCancelled ? nil : error.map { SharedCache.Failure($0) }
    try? await completing { await link.cacher.release(leases, because: failure) }
    link.noteOwnChanges(flights)
  }

  /// Calls the cacher, even if the current task is cancelled.
  private func completing<Result: Sendable>(
    _ operation: @escaping @concurrent @Sendable () async throws -> Result
  ) async throws -> Result {
    try await Task.detached { [storage] in try await storage.calls.run(.fill, operation) }.value
  }
}
