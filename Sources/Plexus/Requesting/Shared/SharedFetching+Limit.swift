extension SharedFetching {
  /// Does the work of flights, each of which ends exactly once.
  ///
  /// Under a limit, the work has its place before it takes a lease.
  func run(_ flights: [Flight]) async {
    guard let limit = cache.source.limit else { return await runWithPlace(flights) }
    let admission = await limit.admission(of: scope)
    if admission == .granted {
      await runWithPlace(flights)
    } else {
      await turnAway(flights, admission)
    }
    limit.leave(scope)
  }

  /// Ends flights that have no place.
  func turnAway(_ flights: [Flight], _ admission: FetchLimit.Admission) async {
    guard admission == .refused else {
      return await cache.turnAway(flights, admission, isBulk: batch != nil)
    }
    let refused = cache.skip(flights, isBulk: batch != nil)
    await fail(refused, because: MultiplexerError.overloaded, countsFailure: false)
  }
}
