/// The task-local context of commits.
@usableFromInline
enum OptimisticCommit: Sendable {
  /// The updates whose commits the task runs: what they store is newer than their drafts.
  static let local = TaskLocal<[UInt64]>(wrappedValue: [])

  @usableFromInline static var ids: [UInt64] { local.get() }
}
