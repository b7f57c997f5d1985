// The rule by which an older value answers a failed fetch. `CacheEngine+FailureGrounds` asks the policy for the grounds;
// entries, stored copies and outcomes apply the rule to their own deadlines.

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
