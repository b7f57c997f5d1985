/// A source from which a value can be requested.
///
/// Multiplexers, entries of maps and ``Request`` conform. A ``Zipper`` requests from several at once.
public protocol Requestable<Value>: Sendable {
  /// The type of the value.
  associatedtype Value: Sendable

  /// Returns the value.
  ///
  /// - Returns: The value.
  /// - Throws: The error of the request; a `CancellationError` if the calling task is cancelled while it waits.
  func request() async throws -> Value

  /// Returns the value if ``request()`` would return it without suspending.
  ///
  /// A ``Zipper`` calls this method before it starts a task for the request. The default implementation returns `nil`,
  /// for requests without values in memory.
  ///
  /// - Returns: The value; `nil` if it is not available without waiting, or if there is an error.
  func requestImmediately() -> Value?
}

extension Requestable {
  /// Returns `nil`, since the value is not in memory.
  @inlinable
  public func requestImmediately() -> Value? { nil }
}
