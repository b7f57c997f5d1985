/// The work that the current task belongs to.
@usableFromInline
enum WaitScope: Sendable {
  /// The task-local value that holds the work.
  @usableFromInline static let local = TaskLocal<WaitNode?>(wrappedValue: nil)

  /// The work that the current task belongs to, if any.
  @usableFromInline static var current: WaitNode? { local.get() }

  /// The work that the current task belongs to, unless its outcome is already known.
  ///
  /// A task that continues after that blocks no caller. It blocks other fetches as long as it has a place of a limit.
  @usableFromInline static var awaited: WaitNode? {
    guard let node = local.get(), !node.isOver else { return nil }
    return node
  }
}
