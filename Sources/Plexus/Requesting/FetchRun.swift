/// One flight's work: the stored copy, the fetch, its timeout and its retries.
struct FetchRun<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  let core: RequestCore<Key, Value>
  let launch: Launch<Key, Value>

  private var policy: CachePolicy { core.policy }
  private var flight: Flight<Key, Value> { launch.flight }

  /// Does the work.
  ///
  /// - Returns: How it has ended.
  func ending() async -> FetchEnding<Value> {
    if flight.work.isCancelled { return .cancelled(CancellationError()) }
    let found = await storedCopy()
    if let found, let ending = ending(with: found) { return ending }
    var launch = launch
    if let found { launch.previous = found.copy }
    if launch.readsFirst { core.noteFetch(hash: flight.hash) }
    return await core.ending(of: launch, found: found, attempts(of: launch))
  }

  private func attempts(
    of launch: Launch<Key, Value>
  ) async -> Attempts.Ending<FetchResult<Value>> {
    let flight = flight
    let core = core
    return await Attempts(policy: policy, clock: core.clock, work: flight.work).run(
      unless: { flight.mark.isSettled },
      { attempt in
        let context = FetchContext(
          previousValue: launch.previous?.value,
          validator: launch.previous?.validator,
          attempt: attempt
        )
        // The user's fetch is known as the work of this flight.
        let result = try await FlightScope.$current.withValue(flight.mark) {
          try await core.fetch(flight.key, context)
        }
        switch result {
        case .notModified, .revalidated:
          if launch.previous == nil { throw MultiplexerError.notModifiedWithoutValue }
        case .value, .fetched, .transient:
          break
        }
        return result
      }
    )
  }

  // MARK: - The stored copy

  /// Reads the stored copy, if there is no value and the policy is to read it before fetching.
  func storedCopy() async -> FoundCopy<Value>? {
    guard launch.readsFirst else { return nil }
    return await core.storedCopy(for: flight)
  }

  /// How the flight ends if the stored copy will do.
  func ending(with found: FoundCopy<Value>) -> FetchEnding<Value>? {
    guard launch.takesStoredCopy, !found.isOutdated else { return nil }
    let now = core.time.now()
    let deadline = found.copy.deadline
    if now < deadline { return .restored(found, renews: false) }
    let staleTime = found.copy.terms.staleTime(core.staleTime)
    return now < deadline.addingSaturating(staleTime) ? .restored(found, renews: true) : nil
  }
}

extension RequestCore {
  /// What the attempts of a fetch come to for one flight.
  ///
  /// - Parameters:
  ///   - launch: The flight, and what its fetch was told.
  ///   - found: The stored copy, if it has been read.
  ///   - ending: How the attempts have ended.
  /// - Returns: How the flight ends.
  func ending(
    of launch: Launch<Key, Value>,
    found: FoundCopy<Value>?,
    _ ending: Attempts.Ending<FetchResult<Value>>
  ) async -> FetchEnding<Value> {
    switch ending {
    case .success(let result):
      return self.ending(of: result, renewing: launch.previous)
    case .cancelled(let error):
      return .cancelled(error)
    case .failure(let error):
      var failure = FetchFailure<Value>(
        error: error,
        memory: Nanoseconds(saturating: policy.failureTimeToLive)
      )
      failure.grounds.policyAllows = policy.usesCachedValue(error)
      failure.grounds.isOriginFailure = (error as? any OriginFailure)?.isOriginFailure ?? true
      failure.stored = found
      if found == nil { failure.previous = launch.previous }
      if found == nil, launch.previous == nil, failure.grounds.policyAllows {
        failure.stored = await storedCopy(for: launch.flight)
      }
      return launch.flight.work.isCancelled ? .cancelled(error) : .failure(failure)
    }
  }

  /// What a fetch that has succeeded comes to.
  private func ending(
    of result: FetchResult<Value>,
    renewing previous: StoredCopy<Value>?
  ) -> FetchEnding<Value> {
    switch result {
    case .value(let value, let timeToLive, let validator):
      let terms = ValueTerms(timeToLive: timeToLive.map { Nanoseconds(saturating: $0) })
      return .value(value, validator: validator, lifetime: lifetime(terms))
    case .fetched(let value, let directives, let validator):
      return .value(value, validator: validator, lifetime: lifetime(ValueTerms(directives)))
    case .transient(let value):
      return .transient(value)
    case .notModified(let timeToLive):
      guard let previous else { return .unexpectedlyNotModified }
      var terms = previous.terms
      if let timeToLive { terms.timeToLive = Nanoseconds(saturating: timeToLive) }
      return .value(previous.value, validator: previous.validator, lifetime: lifetime(terms))
    case .revalidated(let directives, let validator):
      guard let previous else { return .unexpectedlyNotModified }
      return .value(
        previous.value,
        validator: validator ?? previous.validator,
        lifetime: lifetime(ValueTerms(directives))
      )
    }
  }
}

extension FetchEnding {
  /// What there was not has not changed.
  fileprivate static var unexpectedlyNotModified: Self {
    .failure(FetchFailure(error: MultiplexerError.notModifiedWithoutValue))
  }
}
