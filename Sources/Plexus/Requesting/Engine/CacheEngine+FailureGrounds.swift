// The outcome of a failed fetch: the grounds on which an older value can be the answer instead, and the time for which the
// failure is remembered. Whether a value is the answer on these grounds, `ValueTerms+Fallback` decides.

extension CacheEngine {
  /// Returns the outcome of a flight whose attempts have failed.
  ///
  /// - Parameters:
  ///   - error: The error of the last attempt.
  ///   - flight: The flight, with the stored copy that was read for it, if any.
  ///   - grounds: The grounds, if the policy has already been called.
  /// - Returns: The outcome.
  final func failure(
    _ error: any Error,
    of flight: Flight,
    on grounds: ValueTerms.FallbackGrounds? = nil
  ) -> Outcome {
    guard !flight.isCancelled else { return Outcome(.cancelled, error: error) }
    let outcome = Outcome(.failure, error: error)
    let stored = flight.readCopy
    outcome.failure = Outcome.Failure(
      grounds: grounds ?? self.grounds(of: error),
      memory: flight.plan.remembersFailure ? memory(of: error) : 0,
      previous: flight.plan.previous === stored ? nil : flight.plan.previous,
      stored: stored
    )
    return outcome
  }

  /// Returns the grounds on which an older value can be the answer instead of an error.
  ///
  /// The closure of the policy is called once for each key of a failed fetch.
  final func grounds(of error: any Error) -> ValueTerms.FallbackGrounds {
    var grounds = ValueTerms.FallbackGrounds()
    grounds.policyAllows = policy.usesCachedValue(error)
    grounds.isOriginFailure = (error as? any OriginFailure)?.isOriginFailure ?? true
    grounds.isDefinitive = !grounds.isOriginFailure && !grounds.policyAllows
    return grounds
  }

  /// Returns the time for which a failure is remembered.
  private final func memory(of error: any Error) -> Nanoseconds {
    let own = (error as? any LastingFailure)?.lifetime ?? .zero
    return Nanoseconds(saturating: max(own, policy.failureTimeToLive))
  }
}
