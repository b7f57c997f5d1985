/// The errors of the members of a repository.
///
/// All other members succeeded.
public struct MuxRepositoryError: Error {
  /// A member that failed.
  public struct Failure: Sendable {
    /// The id of the multiplexer or map, or its type if it has none.
    public let id: String
    /// The error; for stored copies, a ``CacherError`` that names the keys.
    public let error: any Error

    /// Creates a failure.
    ///
    /// - Parameters:
    ///   - id: The id of the member.
    ///   - error: The error.
    public init(id: String, error: any Error) {
      self.id = id
      self.error = error
    }
  }

  /// The members that failed.
  public let failures: [Failure]

  /// Creates an error.
  ///
  /// - Parameter failures: The members that failed.
  public init(failures: [Failure]) {
    self.failures = failures
  }

  /// The errors of the members that failed.
  public var errors: [any Error] { failures.map(\.error) }
}

extension MuxRepositoryError: CustomStringConvertible {
  /// A description that names all failed members with their errors.
  public var description: String {
    let list = failures.map { "\($0.id): \($0.error)" }.joined(separator: "; ")
    let members = failures.count == 1 ? "member" : "members"
    return "\(failures.count) \(members) of the repository failed: \(list)"
  }
}
