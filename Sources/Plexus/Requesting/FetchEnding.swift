/// How a fetch has ended.
enum FetchEnding<Value: Sendable>: Sendable {
  case value(Value, validator: String?, lifetime: FlightState<Value>.Lifetime)
  /// The stored copy will do; whether a new fetch renews it.
  case restored(FoundCopy<Value>, renews: Bool)
  case failure(FetchFailure<Value>)
  /// It was cancelled, or gave up by itself, with this error.
  case cancelled(any Error)

  /// The value that it may bring into memory.
  var value: Value? {
    switch self {
    case .value(let value, _, _): value
    case .restored(let found, _): found.copy.value
    case .failure(let failure): failure.stored?.copy.value
    case .cancelled: nil
    }
  }

  /// Whether it brings the stored copy in place of a new value.
  var isRestored: Bool {
    if case .restored = self { true } else { false }
  }

  var isFailure: Bool {
    if case .failure = self { true } else { false }
  }

  /// Whether it brings a value that no cacher can have.
  var isNew: Bool {
    if case .value = self { true } else { false }
  }
}

/// A fetch that has failed, and what may stand in for its result.
struct FetchFailure<Value: Sendable>: Sendable {
  let error: any Error
  /// Whether the value that there is may stand in.
  var usesValue = false
  /// How long the failure is remembered.
  var memory: Nanoseconds = 0
  /// The value in memory that was to be renewed.
  ///
  /// It may stand in though it has had to make room since, but does not come back for it. Once memory has been
  /// cleared it may not: ``FlightState/mayUsePrevious``.
  var previous: StoredCopy<Value>?
  /// The stored copy, which comes into memory if there is no value.
  var stored: FoundCopy<Value>?
}
