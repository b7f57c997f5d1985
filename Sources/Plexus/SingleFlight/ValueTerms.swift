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

  /// Returns whether a failed fetch can be answered with the value.
  ///
  /// - Parameters:
  ///   - grounds: The grounds for the fallback.
  ///   - deadline: The time until which the value is fresh.
  ///   - now: The current time.
  /// - Returns: Whether the value can be returned.
  func allowsFallback(
    _ grounds: ValueTerms.FallbackGrounds,
    until deadline: Nanoseconds,
    at now: Nanoseconds
  ) -> Bool {
    if forbidsStale, now >= deadline { return false }
    if grounds.policyAllows { return true }
    guard grounds.isOriginFailure, let staleIfError, staleIfError > 0 else { return false }
    return now < deadline.addingSaturating(staleIfError)
  }
}

extension ValueTerms {
  /// The grounds for answering a failed fetch with an older value.
  @usableFromInline
  struct FallbackGrounds: Hashable, Sendable {
    /// Whether the policy allows it, regardless of the directives.
    var policyAllows = false
    /// Whether the error is an origin failure, for which a directive can allow it.
    var isOriginFailure = false
    /// Whether the error is a definitive answer of the origin: a stale value must not be used in its place.
    var isDefinitive = false

    @usableFromInline
    init() {}
  }
}
