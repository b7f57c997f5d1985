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
}
