/// Something that can be asked for a value.
///
/// Multiplexers and ``Request`` are requestable; a ``Zipper`` asks several of them at once.
public protocol Requestable<Value>: Sendable {
  /// What is asked for.
  associatedtype Value: Sendable

  /// Returns the value.
  ///
  /// - Returns: The value.
  /// - Throws: Why there is none; a `CancellationError` if the calling task is cancelled while it
  ///   waits.
  func request() async throws -> Value

  /// Returns the value if ``request()`` would return it without suspending.
  ///
  /// A ``Zipper`` calls it before it starts a task for the request. A request without values in memory
  /// needs no implementation of its own: the default returns `nil`.
  ///
  /// - Returns: The value; `nil` if it has to be waited for, or if there is an error.
  func requestImmediately() -> Value?
}

extension Requestable {
  /// Returns `nil`: the value has to be waited for.
  @inlinable
  public func requestImmediately() -> Value? { nil }
}
