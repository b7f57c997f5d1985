/// What has happened in a multiplexer since it was created.
///
/// Every request counts once: as a hit, a stale hit, a miss or a join.
public struct CacheStatistics: Hashable, Sendable {
  /// The requests that were answered at once with a fresh value.
  public var hits: Int
  /// The requests that were answered at once with a stale value.
  public var staleHits: Int
  /// The requests that began a fetch, or got a remembered failure.
  public var misses: Int
  /// The requests that waited for a fetch begun by somebody else.
  public var joins: Int
  /// The fetches begun.
  ///
  /// One that is tried again counts once, and so does one for several keys.
  public var fetches: Int
  /// The fetches that failed in the end; cancelled ones do not count.
  ///
  /// One for several keys counts once, however many of them it failed for.
  public var failures: Int
  /// The values that had to make room for others.
  public var evictions: Int
  /// The errors of the storage behind the multiplexer.
  public var cacherErrors: Int
  /// The stored copies that were used in place of a fetch, or after one that failed.
  public var restorations: Int
  /// The fetches that confirmed a value instead of bringing a new one.
  ///
  /// A fetch for several keys counts once for each key that it confirms.
  public var revalidations: Int
  /// The time that all fetches together have taken, failed ones and the waits between attempts included.
  ///
  /// Cancelled fetches do not count. Divide by ``fetches`` for the mean.
  public var fetchTime: Duration
  /// The time that the slowest fetch has taken.
  public var longestFetch: Duration

  /// The share of requests that were answered at once with a fresh value; 0 before the first request.
  public var hitRate: Double {
    let requests = hits + staleHits + misses + joins
    return requests == 0 ? 0 : Double(hits) / Double(requests)
  }

  /// Creates statistics.
  ///
  /// - Parameters:
  ///   - hits: The requests that were answered at once with a fresh value.
  ///   - staleHits: The requests that were answered at once with a stale value.
  ///   - misses: The requests that began a fetch, or got a remembered failure.
  ///   - joins: The requests that waited for a fetch begun by somebody else.
  ///   - fetches: The fetches begun.
  ///   - failures: The fetches that failed in the end.
  ///   - evictions: The values that had to make room for others.
  ///   - cacherErrors: The errors of the storage behind the multiplexer.
  ///   - restorations: The stored copies that were used.
  ///   - revalidations: The fetches that confirmed a value.
  ///   - fetchTime: The time that all fetches together have taken.
  ///   - longestFetch: The time that the slowest fetch has taken.
  @inlinable
  public init(
    hits: Int = 0,
    staleHits: Int = 0,
    misses: Int = 0,
    joins: Int = 0,
    fetches: Int = 0,
    failures: Int = 0,
    evictions: Int = 0,
    cacherErrors: Int = 0,
    restorations: Int = 0,
    revalidations: Int = 0,
    fetchTime: Duration = .zero,
    longestFetch: Duration = .zero
  ) {
    self.hits = hits
    self.staleHits = staleHits
    self.misses = misses
    self.joins = joins
    self.fetches = fetches
    self.failures = failures
    self.evictions = evictions
    self.cacherErrors = cacherErrors
    self.restorations = restorations
    self.revalidations = revalidations
    self.fetchTime = fetchTime
    self.longestFetch = longestFetch
  }

  /// Returns the sum of two statistics, number by number, with the longer of the longest fetches.
  ///
  /// - Parameters:
  ///   - left: The one.
  ///   - right: The other.
  /// - Returns: The sum.
  public static func + (left: Self, right: Self) -> Self {
    Self(
      hits: left.hits + right.hits,
      staleHits: left.staleHits + right.staleHits,
      misses: left.misses + right.misses,
      joins: left.joins + right.joins,
      fetches: left.fetches + right.fetches,
      failures: left.failures + right.failures,
      evictions: left.evictions + right.evictions,
      cacherErrors: left.cacherErrors + right.cacherErrors,
      restorations: left.restorations + right.restorations,
      revalidations: left.revalidations + right.revalidations,
      fetchTime: left.fetchTime + right.fetchTime,
      longestFetch: max(left.longestFetch, right.longestFetch)
    )
  }
}
