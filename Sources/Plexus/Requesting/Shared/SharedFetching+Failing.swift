// The ends of flights whose fetches have failed.

extension SharedFetching {
  /// Ends the flights among some whose fetches have failed: an older value is no answer if the engine was not heard for
  /// too long.
  func fail(
    _ flights: [Flight],
    with outcomes: [Outcome],
    countsFailure: Bool = true
  ) async {
    let failed = zip(flights, outcomes).filter { $1.kind == .failure }
    await renewFallbacks(of: failed.map(\.0).filter { cache.isDetached($0) })
    for (flight, _) in failed {
      cache.distrustIfExpired(cache.key(of: flight), hash: flight.hash)
      let storedAt = flight.readCopy?.storedAt ?? .min
      let isUsable =
        !shared.trust.hasExpired || shared.trust.keepsCopy(from: storedAt, at: cache.time.now())
      if !isUsable { flight.note(readCopy: nil) }
      // The value in memory is none unless the tier confirms it.
      flight.plan.previous = nil
    }
    leave(after: failed.count)
    await cache.end(
      failed.map(\.0),
      with: failed.map(\.1),
      isBulk: batch != nil,
      countsFailure: countsFailure
    )
  }

  /// Looks for the fallbacks of detached flights: whatever has detached them can have removed the one before.
  private func renewFallbacks(of flights: [Flight]) async {
    guard !flights.isEmpty else { return }
    let tags = shared.withDebts { $0.tagRemovals.owed }
    let items = flights.compactMap { flight -> Item? in
      flight.note(readCopy: nil)
      guard let watch = shared.watch(of: flight), !cache.owes(flight, watch.name, tags) else {
        return nil
      }
      return Item(name: watch.name, flight: flight, watch: watch, wish: newWish(of: flight))
    }
    await lookForFallbacks(of: items)
  }

  /// Ends flights whose fetch has failed.
  func fail(
    _ flights: [Flight],
    because error: any Error,
    countsFailure: Bool = true
  ) async {
    let outcomes = flights.map { _ in Outcome(.failure, error: error) }
    await fail(flights, with: outcomes, countsFailure: countsFailure)
  }
}
