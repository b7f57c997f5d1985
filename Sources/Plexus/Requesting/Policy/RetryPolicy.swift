/// The number and the timing of retries of a failed fetch.
///
/// ## Topics
///
/// ### Creating a policy
/// - ``never``
/// - ``exponential(attempts:base:cap:jitter:)``
///
/// ### Reading
/// - ``attempts``
/// - ``base``
/// - ``cap``
/// - ``jitter``
public struct RetryPolicy: Hashable, Sendable {
  /// The number of attempts, including the first.
  public let attempts: Int
  /// The wait before the second attempt, which doubles before each further one.
  public let base: Duration
  /// The longest wait.
  public let cap: Duration
  /// The proportion by which every wait is randomly lengthened or shortened: 0.2 changes it by up to 20%.
  public let jitter: Double

  private init(attempts: Int, base: Duration, cap: Duration, jitter: Double) {
    self.attempts = attempts
    self.base = base
    self.cap = cap
    self.jitter = jitter
  }

  /// A policy without retries.
  public static let never = RetryPolicy(attempts: 1, base: .zero, cap: .zero, jitter: 0)

  /// Returns a policy whose waits double.
  ///
  /// The waits are measured by the clock of the multiplexer. A cancelled fetch is not retried; a `CancellationError`
  /// that it throws by itself is an error like any other. After an error with a ``RetryAdvice``, the wait is at least
  /// as long as advised, even beyond the cap, but a fetch whose advice is longer than
  /// ``CachePolicy/maximumRetryAfter`` is not retried.
  ///
  /// - Parameters:
  ///   - attempts: The number of attempts, including the first.
  ///   - base: The wait before the second attempt.
  ///   - cap: The longest wait, before jitter.
  ///   - jitter: The proportion by which every wait is randomly lengthened or shortened, so that clients do not
  ///     retry at the same moment.
  /// - Returns: The policy.
  /// - Precondition: There is at least one attempt, no duration is negative, and the jitter is between 0 and 1.
  public static func exponential(
    attempts: Int,
    base: Duration,
    cap: Duration,
    jitter: Double
  ) -> RetryPolicy {
    precondition(attempts >= 1, "A fetch needs at least one attempt; use .never for no retries")
    precondition(base >= .zero && cap >= .zero, "A wait between attempts cannot be negative")
    precondition((0...1).contains(jitter), "The jitter of a retry must be between 0 and 1")
    return RetryPolicy(attempts: attempts, base: base, cap: cap, jitter: jitter)
  }

  /// Returns the wait after a failed attempt.
  ///
  /// - Parameters:
  ///   - attempt: The number of the failed attempt, from 1 on.
  ///   - chance: A random number from -1 to 1.
  ///   - advice: The minimum wait, if the error has advice.
  /// - Returns: The wait; `nil` after the last attempt.
  func wait(after attempt: Int, chance: Double, advice: Duration? = nil) -> Duration? {
    guard let wait = ownWait(after: attempt, chance: chance) else { return nil }
    return advice.map { max($0, wait) } ?? wait
  }

  private func ownWait(after attempt: Int, chance: Double) -> Duration? {
    guard attempt < attempts else { return nil }
    var wait = min(base, cap)
    var doublings = attempt - 1
    while doublings > 0, wait > .zero, wait < cap {
      let half = cap / 2
      wait = wait > half ? cap : wait * 2
      doublings -= 1
    }
    guard jitter > 0 else { return wait }
    return .nanoseconds(Nanoseconds(saturating: wait).scaled(by: 1 + jitter * chance))
  }
}
