/// The counters of a multiplexer or a map since its creation, and the numbers of its running, waiting and abandoned fetches.
///
/// Every request counts once: as a hit, a stale hit, a miss or a join.
///
/// ## Topics
///
/// ### Requests
/// - ``hits``
/// - ``staleHits``
/// - ``misses``
/// - ``joins``
/// - ``hitRate``
///
/// ### Fetches
/// - ``fetches``
/// - ``failures``
/// - ``revalidations``
/// - ``fetchTime``
/// - ``longestFetch``
/// - ``running``
/// - ``waiting``
/// - ``abandoned``
///
/// ### Memory and storage
/// - ``evictions``
/// - ``restorations``
/// - ``cacherErrors``
///
/// ### Adding
/// - ``+(_:_:)``
public struct CacheStatistics: Hashable, Sendable {
  /// The number of requests that were answered immediately with a fresh value.
  public var hits: Int
  /// The number of requests that were answered immediately with a stale value.
  public var staleHits: Int
  /// The number of requests that started a fetch or got a remembered failure.
  ///
  /// They include requests that failed because they could not wait: in a cancelled task, or inside the fetch of their
  /// own key.
  public var misses: Int
  /// The number of requests that waited for a fetch of another caller.
  public var joins: Int
  /// The number of fetches started.
  ///
  /// A retried fetch counts once, and so does one of several keys. A fetch that is cancelled before its closure is
  /// called does not count.
  public var fetches: Int
  /// The number of fetches that failed after all retries; cancelled ones do not count.
  ///
  /// A fetch of several keys counts once, however many of them failed.
  public var failures: Int
  /// The number of evicted values.
  public var evictions: Int
  /// The number of errors of the cacher.
  public var cacherErrors: Int
  /// The number of stored copies that were used instead of a fetch, or after a failed one.
  public var restorations: Int
  /// The number of fetches that confirmed a value instead of returning a new one.
  ///
  /// A fetch of several keys counts once for each confirmed key.
  public var revalidations: Int
  /// The total duration of all fetches, including failed ones and the waits between attempts.
  ///
  /// Cancelled fetches do not count. Divide by ``fetches`` for the mean.
  public var fetchTime: Duration
  /// The duration of the slowest fetch.
  public var longestFetch: Duration
  /// The number of calls of the fetch closure that are still running after the ``CachePolicy/fetchTimeout``.
  ///
  /// Such a call ignores its cancellation, while its callers have received the error. Unlike the other numbers, this one
  /// decreases when a call returns. Each attempt of a retried fetch counts, and a fetch of several keys counts once. A
  /// fetch that was cancelled earlier, for example by ``CachePolicy/UnobservedFetch/cancel``, counts from the end of its time limit.
  /// Without a `fetchTimeout`, the number is always zero.
  public var abandoned: Int
  /// The number of places of ``CachePolicy/maximumConcurrentFetches`` that are in use now.
  ///
  /// A place that an ``abandoned`` call uses counts. Fetches that use the place of another one do not. Like the abandoned
  /// calls, this number decreases, too. Without a limit, fetches are not counted, and the number is always zero.
  public var running: Int
  /// The number of fetches that wait for a place of ``CachePolicy/maximumConcurrentFetches`` now.
  public var waiting: Int

  /// The proportion of requests that were answered immediately with a fresh value; 0 before the first request.
  public var hitRate: Double {
    let requests = hits + staleHits + misses + joins
    return requests == 0 ? 0 : Double(hits) / Double(requests)
  }

  /// Creates statistics.
  ///
  /// - Parameters:
  ///   - hits: The number of requests that were answered immediately with a fresh value.
  ///   - staleHits: The number of requests that were answered immediately with a stale value.
  ///   - misses: The number of requests that started a fetch or got a remembered failure.
  ///   - joins: The number of requests that waited for a fetch of another caller.
  ///   - fetches: The number of fetches started.
  ///   - failures: The number of fetches that failed after all retries.
  ///   - evictions: The number of evicted values.
  ///   - cacherErrors: The number of errors of the cacher.
  ///   - restorations: The number of stored copies that were used.
  ///   - revalidations: The number of fetches that confirmed a value.
  ///   - fetchTime: The total duration of all fetches.
  ///   - longestFetch: The duration of the slowest fetch.
  ///   - abandoned: The number of calls of the fetch closure that are still running after their time limit.
  ///   - running: The number of places for fetches that are in use.
  ///   - waiting: The number of fetches that wait for a place.
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
    longestFetch: Duration = .zero,
    abandoned: Int = 0,
    running: Int = 0,
    waiting: Int = 0
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
    self.abandoned = abandoned
    self.running = running
    self.waiting = waiting
  }

  /// Returns the sums of the numbers of two statistics, and the longer of the slowest fetches.
  ///
  /// The sums of ``abandoned``, ``running`` and ``waiting`` are the numbers of both caches at the times when the statistics
  /// were read.
  ///
  /// - Parameters:
  ///   - left: The first statistics.
  ///   - right: The second statistics.
  /// - Returns: The sums.
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
      longestFetch: max(left.longestFetch, right.longestFetch),
      abandoned: left.abandoned + right.abandoned,
      running: left.running + right.running,
      waiting: left.waiting + right.waiting
    )
  }
}
