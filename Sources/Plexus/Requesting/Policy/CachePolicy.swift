/// The rules for how long a multiplexer caches values, and for slow and failing fetches.
///
/// ```swift
/// var policy = CachePolicy()
/// policy.timeToLive = .seconds(60)
/// policy.staleWhileRevalidate = .seconds(600)
/// policy.retry = .exponential(attempts: 3, base: .milliseconds(200), cap: .seconds(5), jitter: 0.2)
/// let rates = Multiplexer(policy: policy) { ["EUR": 1.08] }
/// ```
///
/// ``CacheDirectives`` of a value take precedence over the policy.
///
/// ## Stale values
///
/// A stale value stays in memory until it is replaced, cleared or evicted. It remains available to
/// ``Multiplexer/cachedValue`` and to subscribers. The next fetch receives it with its validator in the
/// ``FetchContext``, and ``usesCachedValue`` can permit it as the answer to a failed fetch, however old it is. A map
/// with a very large number of keys therefore needs a ``staleTimeToLive``, after which stale values are removed, or a
/// ``CacheCapacity``, which evicts values that are no longer requested.
///
/// ## Topics
///
/// ### Creating a policy
/// - ``init(timeToLive:staleWhileRevalidate:usesCachedValue:failureTimeToLive:retry:fetchTimeout:whenUnobserved:cacherRead:expiryJitter:timeToIdle:refreshAhead:softTimeout:storageTimeout:writeBehind:maximumRetryAfter:inheritsTaskLocals:staleTimeToLive:maximumConcurrentFetches:maximumWaitingFetches:)``
///
/// ### Freshness
/// - ``timeToLive``
/// - ``timeToIdle``
/// - ``expiryJitter``
///
/// ### Stale values
/// - ``staleWhileRevalidate``
/// - ``refreshAhead``
/// - ``softTimeout``
/// - ``usesCachedValue``
/// - ``staleTimeToLive``
///
/// ### Fetches
/// - ``maximumConcurrentFetches``
/// - ``maximumWaitingFetches``
/// - ``fetchTimeout``
/// - ``whenUnobserved``
/// - ``retry``
/// - ``maximumRetryAfter``
/// - ``failureTimeToLive``
/// - ``inheritsTaskLocals``
///
/// ### Storage
/// - ``cacherRead``
/// - ``writeBehind``
/// - ``storageTimeout``
public struct CachePolicy: Sendable {
  /// The time for which a value is fresh, measured from the end of its fetch.
  ///
  /// A value becomes stale when it reaches that age, by the clock of the cache. The default clock advances while the
  /// machine sleeps. It is read with a precision of 1 to 10 milliseconds, the tick of the system's coarse clock, or
  /// exactly if the time to live is less than 200 milliseconds. With zero or less, a value is never fresh, and is
  /// returned only where a stale value would be. Default: 30 minutes.
  public var timeToLive: Duration

  /// The time after the time to live during which a stale value is still returned immediately, while one fetch renews
  /// it in the background.
  public var staleWhileRevalidate: Duration

  /// Decides whether a failed fetch may be answered with the cached value, however old.
  ///
  /// By default, it is used after a ``ConnectivityFailure`` whose ``ConnectivityFailure/isConnectivityFailure`` is
  /// `true`. The closure is called once for each key of a failed fetch. If it returns `false`,
  /// ``CacheDirectives/staleIfError`` can still allow the value for a limited time. In either case,
  /// ``CacheDirectives/requiresRevalidation`` forbids stale values.
  public var usesCachedValue: @Sendable (any Error) -> Bool

  /// The time for which a failure is remembered, during which requests fail immediately instead of fetching.
  ///
  /// Live subscriptions that start meanwhile do not fetch either. A `refresh`, and a signal or an interval of a live
  /// subscription, fetch in spite of it. A remembered failure has no effect on a fresh value.
  public var failureTimeToLive: Duration

  /// The number and the timing of the retries before a fetch counts as failed.
  public var retry: RetryPolicy

  /// The time limit for one attempt of a fetch; `nil` for no limit.
  ///
  /// A longer attempt is cancelled and fails with ``MultiplexerError/fetchTimedOut(after:)``, even if it ignores the
  /// cancellation. ``CacheStatistics/abandoned`` is the number of attempts that are still running.
  public var fetchTimeout: Duration?

  /// Whether a fetch continues or is cancelled when its last caller leaves.
  public var whenUnobserved: UnobservedFetch

  /// Whether the stored copy is read before a fetch, or only after a failed one.
  public var cacherRead: CacherRead

  /// The proportion by which each time to live is randomly lengthened or shortened, so that values that are stored
  /// together do not expire together.
  ///
  /// For example, 0.1 changes it by up to 10%. A time to live that the fetch returns is not changed.
  public var expiryJitter: Double

  /// The time for which a value stays fresh after its last use; `nil` for no limit.
  ///
  /// Requests, responses, stores and updates count as uses; ``MultiplexerMap/cachedValue(_:)``, subscriptions and
  /// prefetches do not. A value that is not used for that time becomes stale, as at the end of its time to live, and
  /// stays in memory.
  public var timeToIdle: Duration?

  /// The period before the end of the time to live during which a request renews the value in the background.
  ///
  /// The request, and all requests during the fetch, return the value immediately, since it is still fresh. After a
  /// failed fetch, the next one starts when half of the remaining time has passed. The time to live is that of the
  /// value, from the policy or from its ``CacheDirectives``. If it is not longer than this period, every request renews
  /// the value. With zero, the default, no fresh value is renewed.
  public var refreshAhead: Duration

  /// The maximum time that a caller waits for a fetch if a stale value is available; `nil` for no limit.
  ///
  /// After that time, the caller gets the stale value, and the fetch continues, even without callers. The timeout does
  /// not apply to a value with ``CacheDirectives/requiresRevalidation``, to one that is older than its own
  /// ``CacheDirectives/staleWhileRevalidate`` allows, nor to requests for a newer value such as `refresh().request()`. It
  /// is measured separately for each caller.
  public var softTimeout: Duration?

  /// The time limit for one call of the cacher, by the clock of the cache.
  ///
  /// After that time, a request continues as if there were no stored copy, and stored copies are not read for 30
  /// seconds. Then one call tries again. ``Multiplexer/clear()`` and ``Multiplexer/flush()`` throw
  /// ``MultiplexerError/storageTimedOut(after:)``. Copies that could not be removed are not used, and are removed when
  /// the cacher returns, or by the next call. Default: five seconds.
  public var storageTimeout: Duration

  /// The time after which a change is written to the cacher without a call of `flush`; `nil` for never.
  ///
  /// The time starts with the first unwritten change, and everything that has changed by its end is written together. A
  /// failed write is retried after the same time, or after a tenth of a second if that is longer. Unwritten values are
  /// kept even if the map is released, until 16 writes in succession have failed.
  public var writeBehind: Duration?

  /// The longest wait that a ``RetryAdvice`` can request, such as the `Retry-After` of a server.
  ///
  /// An error that requests a longer wait ends the attempts. Default: a minute.
  public var maximumRetryAfter: Duration

  /// Whether a fetch inherits the task-local values of the caller that causes it, such as the span of a trace.
  ///
  /// That is the caller for which it starts, the one whose answer it renews in the background, or the one that has prefetched
  /// it. A fetch of several keys inherits those of the caller of its first key. A fetch that waits for another one of its key
  /// to end, as after a refresh, has none, and neither has one that a timer starts. The values of callers that join the fetch
  /// are not used. Default: `false`.
  public var inheritsTaskLocals: Bool

  /// The time after its time to live for which a map keeps a stale value; `nil` for no limit.
  ///
  /// Until then, and during the times of its ``CacheDirectives``, the value remains available for failed fetches, for
  /// callers after a soft timeout, and as the previous value of the next fetch. Afterwards, it is removed when new keys
  /// receive values: each of them causes a few other values to be examined, so that in a map that keeps receiving new
  /// keys, at most a quarter of the values are older than that. There is no timer: a map without new keys keeps its
  /// values, and so does a ``Multiplexer``.
  ///
  /// A value stays as long as its key has subscribers, a fetch in flight, a remembered failure or an optimistic update,
  /// and until an unwritten change has been written. Stored copies are not removed. The cause of the removal is
  /// ``CacheEvent/RemovalCause/expired``. With `nil`, the default, every stale value stays, because a failed or
  /// conditional fetch could use it.
  public var staleTimeToLive: Duration?

  /// The maximum number of fetches that run at the same time; `nil` for no limit.
  ///
  /// Further fetches wait for a place. Those with callers go first, then those with a higher priority, then the ones that
  /// were requested earlier. A caller that joins a fetch, or whose priority is raised, moves it forward. When the last caller
  /// of a waiting fetch leaves, the fetch is cancelled, regardless of ``whenUnobserved``, also if it waits for its next
  /// attempt; a prefetch and a renewal in the background wait behind callers again. A clear or a sign-out leaves a
  /// waiting fetch to its callers; without callers, it never starts. One refresh and more during the wait are served by it.
  ///
  /// A fetch has its place from the call of the closure until the closure returns:
  ///
  /// - A fetch of several keys takes one place, and so does a batch.
  /// - Between the attempts of a retried fetch, other fetches use the place, and the next attempt waits for one again. If
  ///   there is no room for it to wait, the fetch fails with the error of the attempt before. With a ``SharedCacher``, a
  ///   fetch takes its place before its lease, and keeps both between its attempts.
  /// - A call that ignores the end of its ``fetchTimeout`` keeps its place until it returns. The next attempt of the same
  ///   fetch waits until then, or for another place: for no longer than another `fetchTimeout`, after which the fetch fails.
  /// - A request in the closure of a fetch of the same cache uses the place of that fetch, also indirectly, through other
  ///   caches, and also if the closure continues after the end of the fetch. Of several such requests, one uses the place at
  ///   a time; the others wait for that, or for another place, and are never refused. As for
  ///   ``MultiplexerError/recursiveRequest(chain:)``, a request in a detached task is not recognized: a fetch must not wait
  ///   for one.
  ///
  /// The ``fetchTimeout`` starts with the fetch, not with the wait. The ``softTimeout`` of a caller includes the wait. Stored
  /// copies are read without a place, and so are the entries of a ``SharedCacher``: a fetch that finds no place looks for one
  /// first. ``CacheStatistics/running`` and ``CacheStatistics/waiting`` show the present numbers.
  public var maximumConcurrentFetches: Int?

  /// The maximum number of fetches that wait because of ``maximumConcurrentFetches``; `nil` for no limit.
  ///
  /// Beyond it, a request that would start a fetch gets a stale value, if ``usesCachedValue`` or
  /// ``CacheDirectives/staleIfError`` allows one for ``MultiplexerError/overloaded``, and that error otherwise. A stored copy
  /// is read for that if ``usesCachedValue`` allows one. The error is not remembered, and does not count as a failure. Renewals in the background and prefetches wait behind all fetches with
  /// callers. They are skipped if there is no room, and make room for a fetch with callers. With 0, no fetch waits.
  public var maximumWaitingFetches: Int?

  /// Creates a policy, with defaults for omitted parameters.
  ///
  /// - Parameters:
  ///   - timeToLive: How long a value is fresh.
  ///   - staleWhileRevalidate: How long after that a stale value is returned while it is renewed.
  ///   - usesCachedValue: A closure that decides whether a failed fetch may be answered with the cached value, however
  ///     old.
  ///   - failureTimeToLive: How long a failure is remembered.
  ///   - retry: The number and the timing of retries.
  ///   - fetchTimeout: The time limit for one attempt of a fetch.
  ///   - whenUnobserved: Whether a fetch continues or is cancelled when its last caller leaves.
  ///   - cacherRead: Whether the stored copy is read before a fetch, or only after a failed one.
  ///   - expiryJitter: The proportion by which the time to live is randomly changed.
  ///   - timeToIdle: How long a value is fresh after its last use.
  ///   - refreshAhead: How long before the end of its time to live a requested value is renewed.
  ///   - softTimeout: How long a caller waits for a fetch if a stale value is available.
  ///   - storageTimeout: The time limit for one call of the cacher.
  ///   - writeBehind: How long after a change it is written without a call of `flush`.
  ///   - maximumRetryAfter: The longest wait that an error can request.
  ///   - inheritsTaskLocals: Whether a fetch inherits the task-local values of the caller that causes it.
  ///   - staleTimeToLive: How long a map keeps a value after its time to live.
  ///   - maximumConcurrentFetches: How many fetches run at the same time.
  ///   - maximumWaitingFetches: How many fetches wait because of that.
  public init(
    timeToLive: Duration = .seconds(30 * 60),
    staleWhileRevalidate: Duration = .zero,
    usesCachedValue: @escaping @Sendable (any Error) -> Bool = { error in
      (error as? any ConnectivityFailure)?.isConnectivityFailure == true
    },
    failureTimeToLive: Duration = .zero,
    retry: RetryPolicy = .never,
    fetchTimeout: Duration? = nil,
    whenUnobserved: UnobservedFetch = .finishAndStore,
    cacherRead: CacherRead = .afterConnectivityError,
    expiryJitter: Double = 0,
    timeToIdle: Duration? = nil,
    refreshAhead: Duration = .zero,
    softTimeout: Duration? = nil,
    storageTimeout: Duration = .seconds(5),
    writeBehind: Duration? = nil,
    maximumRetryAfter: Duration = .seconds(60),
    inheritsTaskLocals: Bool = false,
    staleTimeToLive: Duration? = nil,
    maximumConcurrentFetches: Int? = nil,
    maximumWaitingFetches: Int? = nil
  ) {
    self.timeToLive = timeToLive
    self.staleWhileRevalidate = staleWhileRevalidate
    self.usesCachedValue = usesCachedValue
    self.failureTimeToLive = failureTimeToLive
    self.retry = retry
    self.fetchTimeout = fetchTimeout
    self.whenUnobserved = whenUnobserved
    self.cacherRead = cacherRead
    self.expiryJitter = expiryJitter
    self.timeToIdle = timeToIdle
    self.refreshAhead = refreshAhead
    self.softTimeout = softTimeout
    self.storageTimeout = storageTimeout
    self.writeBehind = writeBehind
    self.maximumRetryAfter = maximumRetryAfter
    self.inheritsTaskLocals = inheritsTaskLocals
    self.staleTimeToLive = staleTimeToLive
    self.maximumConcurrentFetches = maximumConcurrentFetches
    self.maximumWaitingFetches = maximumWaitingFetches
  }

  /// Stops the program if the policy is invalid.
  @usableFromInline
  func validate() {
    precondition(
      (0...1).contains(expiryJitter),
      "The expiry jitter of a cache policy must be between 0 and 1"
    )
    precondition(
      storageTimeout > .zero,
      "The storage timeout of a cache policy must be positive"
    )
    if let timeToIdle {
      precondition(
        timeToIdle > .zero,
        "The time to idle of a cache policy must be positive; use nil for no limit"
      )
    }
    if let softTimeout {
      precondition(
        softTimeout >= .zero,
        "The soft timeout of a cache policy cannot be negative; use nil for no timeout"
      )
    }
    if let staleTimeToLive {
      precondition(
        staleTimeToLive >= .zero,
        "The time for which stale values are kept cannot be negative; use nil for no limit"
      )
    }
    if let maximumConcurrentFetches {
      precondition(
        maximumConcurrentFetches >= 1,
        "A cache policy must allow at least one fetch at a time; use nil for no limit"
      )
    }
    if let maximumWaitingFetches {
      precondition(
        maximumWaitingFetches >= 0,
        "The number of waiting fetches of a cache policy cannot be negative; use nil for no limit"
      )
    }
    if let writeBehind {
      precondition(
        writeBehind >= .zero,
        "The time until a change is written cannot be negative; use nil for no automatic writing"
      )
    }
    if let fetchTimeout {
      precondition(
        fetchTimeout > .zero,
        "The fetch timeout of a cache policy must be positive; use nil for no timeout"
      )
    }
  }
}
