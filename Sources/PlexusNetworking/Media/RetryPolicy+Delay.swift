internal import Plexus

extension RetryPolicy {
  /// The longest Retry-After that is waited for; after a longer one the error is final.
  private static var maximumRetryAfter: Duration { .seconds(60) }

  /// Returns the time to wait after a number of failures; `nil` if the last one is final.
  func delay(after failures: Int, _ error: any Error) -> Duration? {
    guard let wait = delay(after: failures) else { return nil }
    if let advice = (error as? any RetryAdvice)?.retryAfter {
      return advice <= Self.maximumRetryAfter ? advice : nil
    }
    return (error as? any ConnectivityFailure)?.isConnectivityFailure == true ? wait : nil
  }

  /// Returns the time to wait after a number of failures; `nil` if there is no further attempt.
  func delay(after failures: Int) -> Duration? {
    guard failures < attempts else { return nil }
    var wait = min(base, cap)
    for _ in 1..<failures where wait > .zero && wait < cap {
      wait = wait > cap / 2 ? cap : wait * 2
    }
    return jitter > 0 ? wait * (1 + jitter * Double.random(in: -1...1)) : wait
  }
}

extension Clock<Duration> {
  /// The moment after some time.
  func deadline(after duration: Duration) -> Instant { now.advanced(by: duration) }

  /// Sleeps for some time.
  func wait(_ duration: Duration) async throws {
    try await sleep(until: deadline(after: duration), tolerance: nil)
  }
}
