/// The stored copies of a member of a repository, which can be removed after its release.
protocol StoredCopies: AnyObject, Sendable {
  /// An id that is equal for equal copies, as far as that can be determined.
  var id: CacherID { get }

  /// Whether other processes share them.
  var isShared: Bool { get }

  /// Removes the copies.
  func removeAll() async throws
}
