/// The source of a combination: the newest elements of its roots.
///
/// It lives from the first subscriber of the combination to the last. Each root passes its elements on in the critical
/// section in which it changes. The joint therefore never has an older element than the root, and no user code runs
/// here: its only subscriber is the combination, which makes its elements with no lock held.
final class Joint: HubBacked {
  private struct State: Sendable {
    var current: JointState
    /// Whether the first element of each root is known.
    var hasBegun: ContiguousArray<Bool>
    var ended: Set<Int> = []
    /// The subscriptions to the roots, by index.
    var handlers: [Int: Handler] = [:]
    var isConnected = false
    var isClosed = false
  }

  let hub: BroadcastHub<JointState>
  private let roots: [JointPlan.Kind]
  private let state: Locked<State>

  /// Creates a joint that is not subscribed to its roots yet.
  ///
  /// - Parameter roots: The kinds of the roots.
  init(_ roots: [JointPlan.Kind]) {
    self.roots = roots
    state = Locked(
      State(
        current: JointState(roots.map { _ in AnyBox() }),
        hasBegun: ContiguousArray(repeating: false, count: roots.count)
      )
    )
    let joint = WeakReference<Joint>()
    hub = BroadcastHub(isResettable: true, onEmpty: { joint.object?.disconnect() })
    joint.set(self)
  }

  /// Subscribes to the roots; called once, before there is a subscriber.
  func connect(to roots: [any JointRoot]) {
    for (index, root) in roots.enumerated() {
      let handler = root.follow(self, as: index)
      state.withLock { $0.handlers[index] = handler }
    }
    let (isOver, idle) = state.withLock { state -> (Bool, [Handler]) in
      state.isConnected = true
      return (hasEnded(state), takeIdle(&state))
    }
    for handler in idle { handler.cancel() }
    if isOver { finish() }
  }

  /// Ends the subscriptions to the roots.
  private func disconnect() {
    let handlers = state.withLock { state in
      state.isClosed = true
      defer { state.handlers = [:] }
      return state.handlers
    }
    for (_, handler) in handlers.sorted(by: { $0.key < $1.key }) { handler.cancel() }
  }

  private func finish() {
    hub.finish()
    disconnect()
  }

  /// The newest elements of the roots.
  var newest: JointState { state.withLock { $0.current } }

  // MARK: - Roots

  /// Whether the first element of a root is known.
  func hasBegun(_ root: Int) -> Bool {
    state.withLock { $0.hasBegun[root] }
  }

  /// Sets the first element of a root, unless it is known; can be called under the lock of the root.
  func begin(_ root: Int, with box: AnyBox) {
    state.withLock { state in
      guard !state.hasBegun[root] else { return }
      state.hasBegun[root] = true
      state.current.begin(root, with: box)
    }
  }

  /// Receives an element of a root; can be called under the lock of the root.
  ///
  /// - Parameters:
  ///   - box: The element.
  ///   - root: The index of the root.
  ///   - isReset: Whether the root has taken back what it sent before.
  ///   - effects: Receives the work that remains.
  func receive(_ box: AnyBox, from root: Int, isReset: Bool, _ effects: inout HubEffects) {
    var delivery = Delivery<JointState>()
    let former = state.withLock { state -> AnyBox? in
      guard !state.isClosed else { return nil }
      state.hasBegun[root] = true
      let former = state.current.replace(root, with: box)
      if isReset {
        hub.prepareReset(state.current, &delivery)
      } else {
        hub.prepare(state.current, &delivery)
      }
      return former
    }
    effects.release(former)
    effects.add(delivery)
  }

  /// Takes back unread elements, because a root has taken back all but its last element.
  func takeUnread() {
    state.withLock { hub.takeUnread(upTo: $0.current) }.deliver()
  }

  /// Notes that a root has ended; its last element stays.
  func end(_ root: Int) {
    let (isLast, idle) = state.withLock { state -> (Bool, [Handler]) in
      state.ended.insert(root)
      return (state.isConnected && hasEnded(state), takeIdle(&state))
    }
    for handler in idle { handler.cancel() }
    if isLast { finish() }
  }

  /// Whether all sources of the combination have ended.
  private func hasEnded(_ state: State) -> Bool {
    roots.indices.allSatisfy { !roots[$0].isSource || state.ended.contains($0) }
  }

  /// Takes out the subscriptions to roots that only serve sources that have ended.
  private func takeIdle(_ state: inout State) -> [Handler] {
    roots.indices.compactMap { index in
      guard !roots[index].isSource, state.isConnected else { return nil }
      let isIdle = roots.indices.allSatisfy {
        roots[$0].family != index || state.ended.contains($0)
      }
      return isIdle ? state.handlers.removeValue(forKey: index) : nil
    }
  }

  // MARK: - Subscribers

  func subscription(bufferingPolicy: BufferingPolicy<JointState>) -> Subscription<JointState> {
    registered(bufferingPolicy: bufferingPolicy)
  }

  var subscriberCount: Int { hub.subscriberCount }

  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<JointState>, _ replay: [JointState]) -> Result
  ) -> Result {
    state.withLock { body(hub, [$0.current]) }
  }
}
