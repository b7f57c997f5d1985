/// Whether and when a failed fetch is tried again.
public struct RetryPolicy: Hashable, Sendable {
  /// The number of tries, the first one included.
  public let attempts: Int
  /// How long to wait before the second try.
  ///
  /// Every later wait is twice as long as the one before.
  public let base: Duration
  /// The longest wait.
  public let cap: Duration
  /// The share by which every wait is made longer or shorter at random: 0.2 is up to 20 %.
  public let jitter: Double

  private init(attempts: Int, base: Duration, cap: Duration, jitter: Double) {
    self.attempts = attempts
    self.base = base
    self.cap = cap
    self.jitter = jitter
  }

  /// A failed fetch is not tried again.
  public static let never = RetryPolicy(attempts: 1, base: .zero, cap: .zero, jitter: 0)

  /// A failed fetch is tried again after waits that double.
  ///
  /// The waits are measured by the clock of the multiplexer. A fetch that is cancelled is not tried
  /// again; a `CancellationError` that it throws by itself is an error like any other. After an error that gives a
  /// ``RetryAdvice`` the wait is at least as long as advised, also beyond the cap.
  ///
  /// - Parameters:
  ///   - attempts: The number of tries, the first one included.
  ///   - base: How long to wait before the second try.
  ///   - cap: The longest wait, before jitter.
  ///   - jitter: The share by which every wait is made longer or shorter at random, so that many
  ///     clients do not return at the same moment.
  /// - Returns: The policy.
  /// - Precondition: There is at least one try, no duration is negative, and the jitter lies between
  ///   0 and 1.
  public static func exponential(
    attempts: Int,
    base: Duration,
    cap: Duration,
    jitter: Double
  ) -> RetryPolicy {
    precondition(attempts >= 1, "A fetch needs at least one attempt; use .never for no retries")
    precondition(base >= .zero && cap >= .zero, "A wait between attempts cannot be negative")
    precondition((0...1).contains(jitter), "The jitter of a retry must lie between 0 and 1")
    return RetryPolicy(attempts: attempts, base: base, cap: cap, jitter: jitter)
  }

  /// How long to wait after an attempt has failed.
  ///
  /// - Parameters:
  ///   - attempt: The number of the attempt that has failed, from 1 on.
  ///   - chance: A random number from -1 to 1.
  ///   - advice: How long to wait at least, if the error knows.
  /// - Returns: The wait; `nil` if it was the last attempt.
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
