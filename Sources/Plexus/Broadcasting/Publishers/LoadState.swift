/// The loading state of a piece of data.
///
/// During a reload and after a failure, the newest value remains available as the previous value.
///
/// ## Topics
///
/// ### States
/// - ``unknown``
/// - ``loading(previous:)``
/// - ``loaded(_:)``
/// - ``failed(_:previous:)``
///
/// ### Reading
/// - ``value``
/// - ``error``
/// - ``isLoading``
/// - ``map(_:)``
public enum LoadState<Value: Sendable>: Sendable {
  /// The data was never loaded, or has been reset.
  case unknown
  /// The data is being loaded; `previous` is the newest value, if any.
  case loading(previous: Value?)
  /// The data has been loaded.
  case loaded(Value)
  /// Loading has failed; `previous` is the newest value, if any.
  case failed(any Error, previous: Value?)

  /// The newest value, current or previous.
  @inlinable public var value: Value? {
    switch self {
    case .unknown: nil
    case .loading(let previous), .failed(_, let previous): previous
    case .loaded(let value): value
    }
  }

  /// The error, in the failed state only.
  @inlinable public var error: (any Error)? {
    if case .failed(let error, _) = self { error } else { nil }
  }

  /// Whether the data is being loaded.
  @inlinable public var isLoading: Bool {
    if case .loading = self { true } else { false }
  }

  /// Returns the same state with a transformed value.
  ///
  /// - Parameter transform: Transforms the value, current or previous. It is not called without a value.
  /// - Returns: The state with the transformed value.
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
  func equals(_ other: Self) -> Bool {
    let areEqual = equality(of: Value.self)
    return switch (self, other) {
    case (.unknown, .unknown): true
    case (.loading(nil), .loading(nil)): true
    case (.loading(let first?), .loading(let second?)): areEqual(first, second)
    case (.loaded(let first), .loaded(let second)): areEqual(first, second)
    // Errors cannot be compared.
    default: false
    }
  }
}
