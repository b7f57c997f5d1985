// The closures are created where the types are known, so that a fetch needs no
// look-up of types; each sets the flight as the task-local value by which a request of its own key is detected.

extension KeyedCache {
  /// Returns the fetch of a cache for a closure that returns the value of a key.
  @inlinable
  static func fetch(
    _ onKeyFetch: @escaping @concurrent @Sendable (Key) async throws -> Value
  ) -> Operations.Fetch {
    { flight, _ in
      let key = key(of: flight)
      return ValueOutcome(
        try await WaitScope.local.withValue(flight) { try await onKeyFetch(key) }
      )
    }
  }

  /// Returns the fetch of a cache for a closure that is given the value to renew.
  @inlinable
  static func fetch(
    _ onKeyFetch:
      @escaping @concurrent @Sendable (Key, FetchContext<Value>) async throws -> FetchResult<Value>
  ) -> Operations.Fetch {
    { flight, attempt in
      let key = key(of: flight)
      let previous = flight.plan.previous.map(valued)
      let context = FetchContext(
        previousValue: previous?.value,
        validator: previous?.validator,
        attempt: attempt
      )
      let result = try await WaitScope.local.withValue(flight) {
        try await onKeyFetch(key, context)
      }
      return try ValueOutcome(result, renewing: previous)
    }
  }

  /// Returns the fetch of a cache for a closure that returns the values of several keys.
  @inlinable
  static func fetch(together onFetch: @escaping BulkFetch) -> Operations.Fetch {
    { flight, _ in
      let key = key(of: flight)
      let values = try await WaitScope.local.withValue(flight) { try await onFetch([key]) }
      return outcome(of: flight, in: values)
    }
  }

  /// Returns the outcome of one key of a fetch of several: an error of the key is an answer, and no reason for another
  /// attempt.
  @inlinable
  static func outcome(of flight: Flight, in values: BulkValues<Key, Value>) -> Outcome {
    let key = key(of: flight)
    do {
      let previous = flight.plan.previous.map(valued)
      if let outcome = try values.outcome(of: key, renewing: previous) { return outcome }
    } catch {
      return Outcome(.failure, error: error)
    }
    // The key can be left out if no caller needs its value.
    guard flight.isNeeded else { return Outcome(.cancelled, error: CancellationError()) }
    return Outcome(.failure, error: MultiplexerError.missingKey("\(key)"))
  }
}

extension ValueOutcome {
  /// Creates the outcome of a fetch.
  ///
  /// - Parameters:
  ///   - result: The result of the fetch.
  ///   - previous: The value that it was to renew.
  /// - Throws: ``MultiplexerError/notModifiedWithoutValue``.
  @inlinable
  convenience init(_ result: FetchResult<Value>, renewing previous: ValueOutcome?) throws {
    switch result {
    case .value(let value, let directives, let validator):
      self.init(value)
      terms = ValueTerms(directives)
      self.validator = validator
    case .confirmed(let value, let directives, let validator):
      self.init(value)
      isRevalidated = true
      terms = ValueTerms(directives)
      self.validator = validator
    case .transient(let value):
      self.init(value, .transient)
    case .notModified(let timeToLive, let directives, let validator):
      guard let previous else { throw MultiplexerError.notModifiedWithoutValue }
      self.init(previous.value)
      isRevalidated = true
      terms = directives.map { ValueTerms($0) } ?? previous.terms
      terms.isGone = false
      if let timeToLive { terms.timeToLive = Nanoseconds(saturating: timeToLive) }
      self.validator = validator ?? previous.validator
    }
  }
}
