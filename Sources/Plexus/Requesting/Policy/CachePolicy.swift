/// How long a multiplexer keeps values, and what it does when fetching is slow or fails.
///
/// ```swift
/// var policy = CachePolicy()
/// policy.timeToLive = .seconds(60)
/// policy.staleWhileRevalidate = .seconds(600)
/// policy.retry = .exponential(attempts: 3, base: .milliseconds(200), cap: .seconds(5), jitter: 0.2)
/// let rates = Multiplexer(policy: policy) { ["EUR": 1.08] }
/// ```
///
/// A value that comes with ``CacheDirectives`` goes by them where they say something, and by the policy where
/// they do not.
///
/// ## Values whose time is over
///
/// A stale value stays in memory until a newer one takes its place, it is cleared, or it has to go for others. No policy
/// makes it useless: it is what ``Multiplexer/cachedValue`` and subscribers have until the next fetch, what
/// ``FetchContext`` hands to that fetch with its validator, and what ``usesCachedValue`` may let stand in for it,
/// however old. A map of very many keys therefore needs a ``CacheCapacity``; with one, values that are not asked for
/// any more make room for others.
public struct CachePolicy: Sendable {
  /// How long a value is fresh, from the end of its fetch.
  ///
  /// A value is stale at exactly that age, by the clock of the cache. The default clock goes on while the machine
  /// sleeps, and is read with the precision of the system's tick, which takes 1 to 10 milliseconds; with less than
  /// 200 milliseconds it is read exactly. With zero or less a value is never fresh: it serves only where a stale one
  /// does.
  public var timeToLive: Duration

  /// How long after its time to live a stale value is still handed out at once, while one fetch
  /// renews it in the background.
  public var staleWhileRevalidate: Duration

  /// Whether the value that there is, however old, is handed out after a fetch failed with this error.
  ///
  /// By default after a ``ConnectivityFailure`` that says it is one. It is asked once a failed fetch. A value
  /// may stand in without it for the time of its ``CacheDirectives/staleIfError``, and none that is stale
  /// does against its ``CacheDirectives/requiresRevalidation``.
  public var usesCachedValue: @Sendable (any Error) -> Bool

  /// How long a failure is remembered: requests get it at once instead of a new fetch.
  public var failureTimeToLive: Duration

  /// Whether and when a failed fetch is tried again before it counts as failed.
  public var retry: RetryPolicy

  /// How long one attempt of a fetch may take; `nil` for as long as it likes.
  ///
  /// An attempt that takes longer is cancelled and fails with ``MultiplexerError/fetchTimedOut(after:)``
  /// even if it does not heed the cancellation.
  public var fetchTimeout: Duration?

  /// What happens to a fetch when the last caller that waited for it has left.
  public var whenUnobserved: UnobservedFetch

  /// When the stored copy is read.
  public var cacherRead: CacherRead

  /// The share by which the time to live of each value is made longer or shorter at random, so that
  /// keys stored together do not expire together: 0.1 is up to 10 %.
  ///
  /// A time to live that the fetch itself gives is kept exactly.
  public var expiryJitter: Double

  /// How long a value is fresh after it was used last; `nil` for no limit.
  ///
  /// Requests, responses, stores and updates count as uses; ``MultiplexerMap/cachedValue(_:)``, subscriptions and
  /// prefetching do not. A value that was not used for so long is stale from then on, as at the end of its time to
  /// live, and stays in memory.
  public var timeToIdle: Duration?

  /// How long before its time to live is over a value is renewed in the background, if it is requested then.
  ///
  /// The request, and those that come while the value is fetched, get the value at once, which is still fresh. After a
  /// fetch that failed there is another one once half of the rest of the time has passed. The time is counted back
  /// from the deadline of the value itself, be it from the policy or its ``CacheDirectives``; a value that lives no
  /// longer than this is renewed by every request. With zero, the default, no value is renewed while it is fresh.
  public var refreshAhead: Duration

  /// How long a caller waits for a fetch if there is a stale value; `nil` for as long as the fetch takes.
  ///
  /// After that time the caller gets the stale value, and the fetch goes on, even if no other caller waits for it. A
  /// value that ``CacheDirectives/requiresRevalidation`` is no answer, and requests that insist on a newer value, such
  /// as `refresh().request()`, have no soft timeout. The time is counted for each caller.
  public var softTimeout: Duration?

  /// How long one call of the cacher may take, by the clock of the cache.
  ///
  /// Default: five seconds. A request goes on after that time as if there were no stored copy, and for 30 seconds no stored copies are
  /// read. Then one call tries again. ``Multiplexer/clear()`` and ``Multiplexer/flush()`` throw
  /// ``MultiplexerError/storageTimedOut(after:)``. What could not be removed is not used, and is removed as soon as
  /// the cacher returns, or at the next call.
  public var storageTimeout: Duration

  /// How long after a change it is written to the cacher without a call of `flush`; `nil` for never.
  ///
  /// The time is counted from the first change that is not written; everything that has changed until its end is
  /// written together. A write that fails is tried again after the same time, or after a tenth of a second if that is
  /// longer. Until the first attempt has ended the values are kept even if the map is released.
  public var writeBehind: Duration?

  /// The longest wait that an error may ask for, such as the `Retry-After` of a server: ``RetryAdvice``.
  ///
  /// An error that asks for a longer one ends the attempts. Default: a minute.
  public var maximumRetryAfter: Duration

  /// Whether a fetch has the task-local values of the caller that it begins for, such as the span of a trace.
  ///
  /// A fetch of several keys has those of the caller of its first key. Fetches that begin without a caller, such as
  /// the renewal of a stale value, have none. The callers that join a fetch may have other values. Default: `false`.
  public var inheritsTaskLocals: Bool

  /// Creates a policy, with the default for every property that is left out.
  ///
  /// - Parameters:
  ///   - timeToLive: How long a value is fresh.
  ///   - staleWhileRevalidate: How long after that a stale value is still the answer while it is renewed.
  ///   - usesCachedValue: Decides whether a failed fetch may be answered with the cached value, however old.
  ///   - failureTimeToLive: How long a failure is remembered.
  ///   - retry: Whether and when a failed fetch is tried again.
  ///   - fetchTimeout: How long one attempt of a fetch may take.
  ///   - whenUnobserved: What happens to a fetch when its last caller has left.
  ///   - cacherRead: When the stored copy is read.
  ///   - expiryJitter: The share by which the time to live is made longer or shorter at random.
  ///   - timeToIdle: How long a value is fresh after it was used last.
  ///   - refreshAhead: How long before the end of its time to live a value is renewed in the background.
  ///   - softTimeout: How long a caller waits for a fetch if there is a stale value.
  ///   - storageTimeout: How long one call of the cacher may take.
  ///   - writeBehind: How long after a change it is written without a call of `flush`.
  ///   - maximumRetryAfter: The longest wait that an error may ask for.
  ///   - inheritsTaskLocals: Whether a fetch has the task-local values of the caller that it begins for.
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
    inheritsTaskLocals: Bool = false
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
  }

  /// Stops the program where the policy makes no sense.
  @usableFromInline
  func validate() {
    precondition(
      (0...1).contains(expiryJitter),
      "The expiry jitter of a cache policy must lie between 0 and 1"
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
