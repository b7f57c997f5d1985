internal import Synchronization

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
    await fail(refused, because: MultiplexerError.overloaded, countsFailure: false)
  }
}
