/// The directives that came with a value, in the unit of the clock.
@usableFromInline
struct ValueTerms: Hashable, Sendable {
  @usableFromInline var timeToLive: Nanoseconds?
  var staleWhileRevalidate: Nanoseconds?
  var staleIfError: Nanoseconds?
  var requiresRevalidation = false

  @usableFromInline
  init(timeToLive: Nanoseconds? = nil) {
    self.timeToLive = timeToLive
  }

  /// Whether nothing came with the value.
  var isEmpty: Bool {
    timeToLive == nil && staleWhileRevalidate == nil && staleIfError == nil && !requiresRevalidation
  }

  /// The time after the time to live in which the value is an answer while it is renewed.
  ///
  /// - Parameter policy: The time if nothing came with the value.
  /// - Returns: The time, which is not negative.
  func staleTime(_ policy: Nanoseconds) -> Nanoseconds {
    requiresRevalidation ? 0 : max(staleWhileRevalidate ?? policy, 0)
  }

  /// Returns whether a failed fetch may be answered with the value.
  ///
  /// - Parameters:
  ///   - grounds: The reasons why it may.
  ///   - deadline: The time until which the value is fresh.
  ///   - now: The present time.
  /// - Returns: Whether it may.
  func allowsFallback(
    _ grounds: ValueTerms.FallbackGrounds,
    until deadline: Nanoseconds,
    at now: Nanoseconds
  ) -> Bool {
    if requiresRevalidation, now >= deadline { return false }
    if grounds.policyAllows { return true }
    guard grounds.isOriginFailure, let staleIfError, staleIfError > 0 else { return false }
    return now < deadline.addingSaturating(staleIfError)
  }
}

extension ValueTerms {
  /// The reasons why a failed fetch may be answered with an older value.
  @usableFromInline
  struct FallbackGrounds: Hashable, Sendable {
    /// Whether the policy allows it, whatever came with the value.
    var policyAllows = false
    /// Whether the error is one for which what came with the value may allow it.
    var isOriginFailure = false

    @usableFromInline
    init() {}
  }
}
