/// The error of a double that fails, such as a fetch, a handler or a stream.
///
/// It is not a failure of connectivity.
public struct Broken: Error, Hashable {
  /// Distinguishes it from other errors of the same test.
  public var reason: String

  /// Creates an error.
  public init(reason: String = "") {
    self.reason = reason
  }
}
