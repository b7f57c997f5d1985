/// What is known of a piece of data that has to be loaded.
///
/// The newest known value survives a reload and a failed one as the previous value.
public enum LoadState<Value: Sendable>: Sendable {
  /// Nothing is known: it was never loaded, or has been reset.
  case unknown
  /// It is being loaded; the value known before, if any.
  case loading(previous: Value?)
  /// It has been loaded.
  case loaded(Value)
  /// Loading it has failed; the value known before, if any.
  case failed(any Error, previous: Value?)

  /// The newest known value, fresh or previous.
  @inlinable public var value: Value? {
    switch self {
    case .unknown: nil
    case .loading(let previous), .failed(_, let previous): previous
    case .loaded(let value): value
    }
  }

  /// Why loading has failed, in the failed state only.
  @inlinable public var error: (any Error)? {
    if case .failed(let error, _) = self { error } else { nil }
  }

  /// Whether it is being loaded.
  @inlinable public var isLoading: Bool {
    if case .loading = self { true } else { false }
  }

  /// Returns the same state of a value derived from this one.
  ///
  /// - Parameter transform: What to make of the value; called if there is one, fresh or previous.
  /// - Returns: The state with the derived value.
  /// - Throws: The error of the closure.
  @inlinable
  public func map<Mapped: Sendable, Failure: Error>(
    _ transform: (Value) throws(Failure) -> Mapped
  ) throws(Failure) -> LoadState<Mapped> {
    switch self {
    case .unknown: .unknown
    case .loading(let previous?): .loading(previous: try transform(previous))
    case .loading(nil): .loading(previous: nil)
    case .loaded(let value): .loaded(try transform(value))
    case .failed(let error, let previous?): .failed(error, previous: try transform(previous))
    case .failed(let error, nil): .failed(error, previous: nil)
    }
  }
}

extension LoadState: PartlyEquatable {
  func equals(_ other: Any) -> Bool {
    guard let other = other as? LoadState<Value> else { return false }
    return switch (self, other) {
    case (.unknown, .unknown): true
    case (.loading(nil), .loading(nil)): true
    case (.loading(let first?), .loading(let second?)): areEqual(first, second)
    case (.loaded(let first), .loaded(let second)): areEqual(first, second)
    // There is no telling whether two errors are the same.
    default: false
    }
  }
}
