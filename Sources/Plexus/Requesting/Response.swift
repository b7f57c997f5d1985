/// A value together with where it comes from and how old it is.
public struct Response<Value: Sendable>: Sendable {
  /// The origin of a value.
  public typealias Source = ResponseSource

  /// The value.
  public let value: Value
  /// Where the value comes from.
  public let source: Source
  /// The time since the value was fetched or stored; zero for one that was just fetched.
  public let age: Duration
  /// Whether the value is past its time to live, or stands in for one that could not be fetched.
  public let isStale: Bool
  /// Whether the fetch that this request waited for has confirmed the value instead of bringing a new one.
  public let isRevalidated: Bool
  /// Why the value could not be renewed, if that was tried.
  public let error: (any Error)?

  /// Creates a response, for instance in a test or in a ``Requestable`` of your own.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - source: Where it comes from.
  ///   - age: The time since it was fetched or stored.
  ///   - isStale: Whether it is past its time to live or stands in for a newer one.
  ///   - isRevalidated: Whether a fetch has confirmed it.
  ///   - error: Why it could not be renewed.
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
