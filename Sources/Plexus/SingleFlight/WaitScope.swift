/// Work that a task can wait for: a fetch, a batch of fetches, the load of a publisher, an action of a debouncer,
/// a post, or the call of a handler.
///
/// A task that works for a node carries it as a task-local value, so that a wait that closes a circle is
/// detected. Such a task can outlive the work, so that a settled node holds nothing but its name.
@usableFromInline
class WaitNode: @unchecked Sendable {
  @usableFromInline
  init() {}

  /// The name of the work in error messages, if it has one.
  var label: String? { nil }

  /// The node that has to end before this one can.
  var predecessor: WaitNode? { nil }

  /// Further nodes that have to end before this one can; called under the lock of the graph.
  var others: [WaitNode] { [] }

  /// Whether the outcome is known, so that no task has to wait for it any longer.
  @usableFromInline var isSettled: Bool { false }
}

extension WaitNode: Hashable {
  @usableFromInline
  static func == (left: WaitNode, right: WaitNode) -> Bool {
    left === right
  }

  @usableFromInline
  func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(self))
  }
}

/// The work that the current task belongs to.
@usableFromInline
enum WaitScope: Sendable {
  /// The work that the current task belongs to.
  @usableFromInline static let local = TaskLocal<WaitNode?>(wrappedValue: nil)

  /// The work that the current task belongs to.
  @usableFromInline static var current: WaitNode? { local.get() }

  /// The work that the current task belongs to, unless its outcome is known already: a task that
  /// goes on after that holds up no caller.
  @usableFromInline static var awaited: WaitNode? {
    guard let node = local.get(), !node.isSettled else { return nil }
    return node
  }
}
