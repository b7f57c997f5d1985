/// Work that a task can wait for: a fetch, a batch of fetches, a load of a publisher, an action of a debouncer or
/// throttler, a post, or a call of a handler.
///
/// Tasks that work for a node carry it as a task-local value, so that waits that close a cycle are detected. A
/// task can outlive its work, so a settled node should hold as little as possible.
@usableFromInline
class WaitNode: @unchecked Sendable {
  @usableFromInline
  init() {}

  /// The name of the work in error messages, if any.
  var label: String? { nil }

  /// The node that must end before this one can begin, if any.
  var predecessor: WaitNode? { nil }

  /// Further nodes that must end before this one can; called under the lock of the graph.
  var others: [WaitNode] { [] }

  /// Whether the outcome is known, so that no task needs to wait for it.
  @usableFromInline var isSettled: Bool { false }

  /// Whether the node no longer waits for others: not as long as it has a place that others wait for.
  var isOver: Bool { isSettled }
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
