/// A value with its source and its age.
///
/// ## Topics
///
/// ### Reading
/// - ``value``
/// - ``source``
/// - ``age``
/// - ``isStale``
/// - ``isRevalidated``
/// - ``error``
///
/// ### Creating a response
/// - ``init(value:source:age:isStale:isRevalidated:error:)``
public struct Response<Value: Sendable>: Sendable {
  /// The source of a value.
  public typealias Source = ResponseSource

  /// The value.
  public let value: Value
  /// The source of the value.
  public let source: Source
  /// The time since the attempt that fetched the value started, or since the value was stored.
  public let age: Duration
  /// Whether the value is past its time to live, or replaces one that could not be fetched.
  public let isStale: Bool
  /// Whether the fetch of this request has confirmed the value instead of returning a new one.
  public let isRevalidated: Bool
  /// The error of the fetch that should have renewed the value, if it failed.
  public let error: (any Error)?

  /// Creates a response, for example in a test or in your own ``Requestable``.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - source: The source of the value.
  ///   - age: The time since it was fetched or stored.
  ///   - isStale: Whether it is past its time to live or replaces a newer one.
  ///   - isRevalidated: Whether a fetch has confirmed it.
  ///   - error: The error of renewing it.
  @inlinable
  public init(
    value: Value,
    source: Source,
    age: Duration = .zero,
    isStale: Bool = false,
    isRevalidated: Bool = false,
    error: (any Error)? = nil
  ) {
    self.value = value
    self.source = source
    self.age = age
    self.isStale = isStale
    self.isRevalidated = isRevalidated
    self.error = error
  }
}
