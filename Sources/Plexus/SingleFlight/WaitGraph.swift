/// The waits of fetches and loads for each other, over all caches and publishers of the process.
///
/// Only requests and loads that are made inside a fetch or a load, and have to wait, are recorded.
enum WaitGraph: Sendable {
  private static let state = Locked(WaitGraphState<WaitNode>())

  /// Records that a fetch or a load waits for another one, unless that closes a circle.
  ///
  /// The caller keeps both alive until it calls ``stopWaiting(_:for:)``.
  ///
  /// - Parameters:
  ///   - node: The fetch or load that is about to wait.
  ///   - target: The one that it is about to wait for.
  /// - Returns: If the wait closes a circle, the names of its members, the first one again at the end;
  ///   members without a name are left out.
  static func wait(_ node: WaitNode, for target: WaitNode) -> [String]? {
    // The last reference to a predecessor may be the one that is loaded here: it is released unlocked.
    var predecessors: [WaitNode] = []
    let circle = state.withLock { state in
      state.wait(
        node,
        for: target,
        isSettled: \.isSettled,
        predecessor: { node in
          guard let predecessor = node.predecessor else { return nil }
          predecessors.append(predecessor)
          return predecessor
        }
      )
    }
    withExtendedLifetime(predecessors) {}
    guard let circle else { return nil }
    let names = circle.compactMap(\.label)
    return Array(names.suffix(1)) + names
  }

  /// Removes what ``wait(_:for:)`` has recorded.
  static func stopWaiting(_ node: WaitNode, for target: WaitNode) {
    state.withLock { $0.stopWaiting(node, for: target) }
  }
}
