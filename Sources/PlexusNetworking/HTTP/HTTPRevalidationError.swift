/// A value could not be renewed, and its server has forbidden to use it without asking.
///
/// Thrown in place of a failure of connectivity, after which a cache would use the value that it has: the
/// answer that the value came with said must-revalidate, no-cache or no-store.
public struct HTTPRevalidationError: Error {
  /// Why the server could not be asked.
  public let underlying: any Error

  /// Creates an error.
  ///
  /// - Parameter underlying: Why the server could not be asked.
  public init(underlying: any Error) {
    self.underlying = underlying
  }
}

extension HTTPRevalidationError: CustomStringConvertible {
  /// A sentence that says what happened.
  public var description: String {
    "The value must be revalidated by its server, which failed: \(underlying)"
  }
}
