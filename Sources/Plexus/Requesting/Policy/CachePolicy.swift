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
public struct CachePolicy: Sendable {
  /// How long a value is fresh, from the end of its fetch.
  ///
  /// A value is stale at exactly that age. With zero or less a value is never fresh: it serves only where a
  /// stale one does.
  public var timeToLive: Duration = .seconds(30 * 60)

  /// How long after its time to live a stale value is still handed out at once, while one fetch
  /// renews it in the background.
  public var staleWhileRevalidate: Duration = .zero

  /// Whether the value that there is, however old, is handed out after a fetch failed with this error.
  ///
  /// By default after a ``ConnectivityFailure`` that says it is one. It is asked once a failed fetch. A value
  /// may stand in without it for the time of its ``CacheDirectives/staleIfError``, and none that is stale
  /// does against its ``CacheDirectives/requiresRevalidation``.
  public var usesCachedValue: @Sendable (any Error) -> Bool = { error in
    (error as? any ConnectivityFailure)?.isConnectivityFailure == true
  }

  /// How long a failure is remembered: requests get it at once instead of a new fetch.
  public var failureTimeToLive: Duration = .zero

  /// Whether and when a failed fetch is tried again before it counts as failed.
  public var retry: RetryPolicy = .never

  /// The longest wait that an error may ask for, such as the `Retry-After` of a server: ``RetryAdvice``.
  ///
  /// An error that asks for a longer one ends the attempts. Default: a minute.
  public var maximumRetryAfter: Duration = .seconds(60)

  /// How long one attempt of a fetch may take; `nil` for as long as it likes.
  ///
  /// An attempt that takes longer is cancelled and fails with ``MultiplexerError/fetchTimedOut(after:)``
  /// even if it does not heed the cancellation.
  public var fetchTimeout: Duration?

  /// What happens to a fetch when the last caller that waited for it has left.
  public var whenUnobserved: UnobservedFetch = .finishAndStore

  /// When the stored copy is read.
  public var cacherRead: CacherRead = .afterConnectivityError

  /// The share by which the time to live of each value is made longer or shorter at random, so that
  /// keys stored together do not expire together: 0.1 is up to 10 %.
  ///
  /// A time to live that the fetch itself gives is kept exactly.
  public var expiryJitter: Double = 0

  /// Creates the policy that every property describes as its default.
  public init() {}

  /// Creates the default policy, but for how long a value is fresh.
  ///
  /// - Parameter timeToLive: How long a value is fresh.
  public init(timeToLive: Duration) {
    self.timeToLive = timeToLive
  }

  /// Stops the program where the policy makes no sense.
  @usableFromInline
  func validate() {
    precondition(
      (0...1).contains(expiryJitter),
      "The expiry jitter of a cache policy must lie between 0 and 1"
    )
    if let fetchTimeout {
      precondition(
        fetchTimeout > .zero,
        "The fetch timeout of a cache policy must be positive; use nil for no timeout"
      )
    }
  }
}
