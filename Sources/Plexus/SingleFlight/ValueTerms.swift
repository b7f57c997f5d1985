/// The cache directives of a value, in nanoseconds.
@usableFromInline
struct ValueTerms: Hashable, Sendable {
  @usableFromInline var timeToLive: Nanoseconds?
  var staleWhileRevalidate: Nanoseconds?
  var staleIfError: Nanoseconds?
  var requiresRevalidation = false
  /// Whether the origin has answered since that the value is gone, or forbidden.
  @usableFromInline var isGone = false

  @usableFromInline
  init(timeToLive: Nanoseconds? = nil) {
    self.timeToLive = timeToLive
  }

  /// Whether the value has no directives.
  var isEmpty: Bool {
    timeToLive == nil && staleWhileRevalidate == nil && staleIfError == nil && !forbidsStale
  }

  /// Whether the value is no answer once it is stale.
  var forbidsStale: Bool { requiresRevalidation || isGone }

  /// Returns the time after the time to live during which the value is returned while it is renewed.
  ///
  /// - Parameter policy: The time to use without a directive.
  /// - Returns: The time, which is not negative.
  func staleTime(_ policy: Nanoseconds) -> Nanoseconds {
    forbidsStale ? 0 : max(staleWhileRevalidate ?? policy, 0)
  }

  /// Returns whether the value can be returned while it is renewed.
  ///
  /// - Parameters:
  ///   - policy: The time after its deadline to use without a directive.
  ///   - deadline: The time until which the value is fresh.
  ///   - now: The current time.
  /// - Returns: Whether the value can be returned.
  func allowsRenewal(
    within policy: Nanoseconds,
    until deadline: Nanoseconds,
    at now: Nanoseconds
  ) -> Bool {
    !forbidsStale && now < deadline.addingSaturating(staleTime(policy))
  }
}
