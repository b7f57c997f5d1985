// The failures of fetches: the values that can be the answer instead, and the time for which a failure is remembered.

extension CacheEngine {
  /// Returns the outcome of a flight whose attempts have failed.
  ///
  /// - Parameters:
  ///   - error: The error of the last attempt.
  ///   - flight: The flight, with the stored copy that was read for it, if any.
  /// - Returns: The outcome.
  final func failure(_ error: any Error, of flight: Flight) -> Outcome {
    guard !flight.isCancelled else { return Outcome(.cancelled, error: error) }
    let outcome = Outcome(.failure, error: error)
    let stored = flight.readCopy
    outcome.failure = Outcome.Failure(
      grounds: grounds(of: error),
      memory: flight.plan.remembersFailure ? memory(of: error) : 0,
      previous: flight.plan.previous === stored ? nil : flight.plan.previous,
      stored: stored
    )
    return outcome
  }

  /// Returns the grounds on which an older value can be the answer instead of an error.
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
