/// What came with a value about keeping it, in the unit of the clock.
struct ValueTerms: Hashable, Sendable {
  var timeToLive: Nanoseconds?
  var staleWhileRevalidate: Nanoseconds?
  var staleIfError: Nanoseconds?
  var requiresRevalidation = false

  init(timeToLive: Nanoseconds? = nil) {
    self.timeToLive = timeToLive
  }

  init(_ directives: CacheDirectives) {
    timeToLive = directives.timeToLive.map { Nanoseconds(saturating: $0) }
    staleWhileRevalidate = directives.staleWhileRevalidate.map { Nanoseconds(saturating: $0) }
    staleIfError = directives.staleIfError.map { Nanoseconds(saturating: $0) }
    requiresRevalidation = directives.requiresRevalidation
  }

  var directives: CacheDirectives {
    CacheDirectives(
      timeToLive: timeToLive.map { .nanoseconds($0) },
      staleWhileRevalidate: staleWhileRevalidate.map { .nanoseconds($0) },
      staleIfError: staleIfError.map { .nanoseconds($0) },
      requiresRevalidation: requiresRevalidation
    )
  }

  /// How long the value is handed out after its time to live while it is renewed.
  ///
  /// - Parameter policy: How long it is if nothing came with it.
  /// - Returns: The time, which is not negative.
  func staleTime(_ policy: Nanoseconds) -> Nanoseconds {
    requiresRevalidation ? 0 : max(staleWhileRevalidate ?? policy, 0)
  }

  /// Whether the value may stand in for one that could not be fetched.
  ///
  /// - Parameters:
  ///   - grounds: Why it might.
  ///   - deadline: Until when it is fresh.
  ///   - now: The instant.
  /// - Returns: Whether it may.
  func allowStandIn(
    _ grounds: StandInGrounds,
    until deadline: Nanoseconds,
    at now: Nanoseconds
  ) -> Bool {
    if requiresRevalidation, now >= deadline { return false }
    if grounds.policyAllows { return true }
    guard grounds.isOriginFailure, let staleIfError, staleIfError > 0 else { return false }
    return now < deadline.addingSaturating(staleIfError)
  }
}

/// What a failure has to say for a value to stand in.
struct StandInGrounds: Hashable, Sendable {
  /// Whether the policy lets the value stand in, whatever its own directives.
  var policyAllows = false
  /// Whether it is one of those for which the directives of the value may let it stand in.
  var isOriginFailure = false
}

/// A value with all that a cacher keeps of it, in terms of the monotonic clock.
struct StoredCopy<Value: Sendable>: Sendable {
  let value: Value
  var validator: String?
  /// When it was fetched or stored.
  let storedAt: Nanoseconds
  /// Until when it is fresh; in the past if it is not.
  let deadline: Nanoseconds
  /// What came with it about keeping it.
  var terms = ValueTerms()

  /// Whether it may stand in for a value that could not be fetched.
  func mayStandIn(_ grounds: StandInGrounds, at now: Nanoseconds) -> Bool {
    terms.allowStandIn(grounds, until: deadline, at: now)
  }
}
