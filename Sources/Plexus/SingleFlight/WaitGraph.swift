/// The waits of fetches, loads and handlers for each other, over all caches, publishers and buses of the process.
///
/// Only waits inside a fetch, a load, an action of a debouncer or an asynchronous handler of events are recorded.
enum WaitGraph: Sendable {
  private static let state = Locked(WaitGraphState<WaitNode>())

  /// Records that a node waits for another one, unless that closes a circle.
  ///
  /// The caller keeps both alive until it calls ``stopWaiting(_:for:)``.
  ///
  /// - Parameters:
  ///   - node: The one that is about to wait.
  ///   - target: The one that it is about to wait for.
  /// - Returns: If the wait closes a circle, the names of its members, the first one again at the end;
  ///   members without a name are left out.
  static func wait(_ node: WaitNode, for target: WaitNode) -> [String]? {
    // The last reference to a node may be the one that is loaded here: it is released unlocked.
    var loaded: [WaitNode] = []
    let circle = state.withLock { state in
      state.wait(
        node,
        for: target,
        isSettled: \.isSettled,
        predecessor: { node in
          guard let predecessor = node.predecessor else { return nil }
          loaded.append(predecessor)
          return predecessor
        },
        others: { node in
          let others = node.others
          loaded += others
          return others
        }
      )
    }
    withExtendedLifetime(loaded) {}
    guard let circle else { return nil }
    let names = circle.compactMap(\.label)
    return Array(names.suffix(1)) + names
  }

  /// Removes what ``wait(_:for:)`` has recorded.
  static func stopWaiting(_ node: WaitNode, for target: WaitNode) {
    state.withLock { $0.stopWaiting(node, for: target) }
  }
}
