/// How a fetch has ended.
enum FetchEnding<Value: Sendable>: Sendable {
  case value(Value, validator: String?, lifetime: FlightState<Value>.Lifetime)
  /// A value that must not be kept.
  case transient(Value)
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
    case .transient, .cancelled: nil
    }
  }

  /// Whether its value takes the place of whatever is in memory.
  var isKept: Bool {
    switch self {
    case .value, .restored: true
    case .transient, .failure, .cancelled: false
    }
  }

  var isFailure: Bool {
    if case .failure = self { true } else { false }
  }

  /// Whether it brings a value that no cacher can have.
  var isNew: Bool {
    switch self {
    case .value, .transient: true
    case .restored, .failure, .cancelled: false
    }
  }
}

/// A fetch that has failed, and what may stand in for its result.
struct FetchFailure<Value: Sendable>: Sendable {
  let error: any Error
  /// What it has to say for a value to stand in.
  var grounds = StandInGrounds()
  /// How long the failure is remembered.
  var memory: Nanoseconds = 0
  /// The value in memory that was to be renewed.
  ///
  /// It may stand in though it has had to make room since, but does not come back for it. Once memory has
  /// been cleared it may not: ``FlightState/mayUsePrevious``.
  var previous: StoredCopy<Value>?
  /// The stored copy, which comes into memory if there is no value.
  var stored: FoundCopy<Value>?
}
