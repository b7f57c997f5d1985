internal import Synchronization

extension SharedFetching {
  /// Does the work of flights, each of which ends exactly once.
  ///
  /// Under a limit, the work has its place before it takes a lease. An entry that is an answer needs no place.
  func run(_ flights: [Flight]) async {
    guard let limit = cache.source.limit else { return await runWithPlace(flights) }
    var flights = flights
    if !limit.isInside(scope) {
      let ended = await lookWithoutPlace(for: items(of: flights).items)
      flights.removeAll { ended.contains(ObjectIdentifier($0)) }
    }
    if !flights.isEmpty { await runUnderLimit(flights, limit) }
    limit.leave(scope)
  }

  private func runUnderLimit(_ flights: [Flight], _ limit: FetchLimit) async {
    let admission = await limit.admission(of: scope)
    guard admission == .granted else { return await turnAway(flights, admission) }
    let departing = cache.depart(flights, isBulk: batch != nil)
    leave(after: flights.count - departing.count)
    if !departing.isEmpty { await runWithPlace(departing) }
  }

  /// Looks in the tier without taking leases, and ends the flights that entries answer.
  ///
  /// - Returns: The flights that have ended.
  func lookWithoutPlace(for items: [Item]) async -> Set<ObjectIdentifier> {
    // A refresh needs a newer value than the tier has, unless another process has fetched it: that needs a place.
    let looking = items.filter { $0.flight.plan.takesStoredCopy && $0.flight.isNeeded }
    guard !looking.isEmpty, await payDebts(of: looking) else { return [] }
    var ended: Set<ObjectIdentifier> = []
    for (item, outcome) in await answersWithoutLease(for: looking) {
      // The entry can be from before a change, or before a refresh that the flight serves.
      guard !item.watch.settle(), item.flight.isNeeded, cache.departsForAnswer(item.flight) else {
        // It looks again when it has a place: a change until then does not detach it.
        item.watch.begin()
        continue
      }
      ended.insert(ObjectIdentifier(item.flight))
      finish(item.flight, with: outcome)
    }
    return ended
  }

  /// The number of flights that have not ended.
  final class Unended: Sendable {
    private let count: Atomic<Int>

    init(_ count: Int) {
      self.count = Atomic(count)
    }

    /// Some flights end.
    ///
    /// - Returns: Whether they are the last ones.
    func end(_ ended: Int) -> Bool {
      ended > 0 && count.subtract(ended, ordering: .relaxed).newValue == 0
    }
  }

  /// Leaves the place of the work before its last flights end: their callers can request again at once.
  ///
  /// - Parameter count: The number of flights that end.
  func leave(after count: Int) {
    if unended?.end(count) == true { cache.source.limit?.leave(scope) }
  }

  /// Ends flights that have no place.
  func turnAway(_ flights: [Flight], _ admission: FetchLimit.Admission) async {
    guard admission == .refused else {
      return await cache.turnAway(flights, admission, isBulk: batch != nil)
    }
    let refused = cache.skip(flights, isBulk: batch != nil)
    leave(after: flights.count - refused.count)
    if !refused.isEmpty { await lookForFallbacks(of: items(of: refused).items) }
    await fail(refused, because: MultiplexerError.overloaded, countsFailure: false)
  }
}
