/// What went wrong when a repository asked all of its members for something.
///
/// Members that are not named have done it.
public struct MuxRepositoryError: Error {
  /// The errors of the members that failed.
  public let errors: [any Error]

  /// Creates an error.
  ///
  /// - Parameter errors: The errors of the members that failed.
  public init(errors: [any Error]) {
    self.errors = errors
  }
}

extension MuxRepositoryError: CustomStringConvertible {
  /// A sentence that names all errors.
  public var description: String {
    "\(errors.count) members of the repository failed: \(errors.map { "\($0)" }.joined(separator: "; "))"
  }
}
