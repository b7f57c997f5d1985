/// The subscribers to changes that count for one store and end with it.
@usableFromInline
final class ChangeSubscriptions: Sendable {
  private struct State: Sendable {
    var hubs: [SubscriptionID: HubCore] = [:]
    var isFinished = false
  }

  private let state = Locked(State())

  @usableFromInline
  init() {}

  /// The current number of subscribers; handlers of released owners are removed first.
  var count: Int {
    let hubs = state.withLock { $0.hubs }
    for hub in hubs.values { hub.removeOrphans() }
    return state.withLock { $0.hubs.count }
  }

  @usableFromInline
  func insert(_ hub: HubCore, id: SubscriptionID) {
    let isFinished = state.withLock { state in
      if !state.isFinished { state.hubs[id] = hub }
      return state.isFinished
    }
    if isFinished { hub.end() }
  }

  @usableFromInline
  func remove(_ id: SubscriptionID) {
    let hub = state.withLock { $0.hubs.removeValue(forKey: id) }
    withExtendedLifetime(hub) {}
  }

  /// Ends every stream after the elements sent before, in subscription order.
  ///
  /// - Returns: The subscribers.
  @discardableResult
  @usableFromInline
  func finish() -> [SubscriptionID] {
    let hubs = state.withLock { state in
      state.isFinished = true
      defer { state.hubs = [:] }
      return state.hubs
    }
    let order = hubs.keys.sorted { $0.rawValue < $1.rawValue }
    for id in order { hubs[id]?.end() }
    return order
  }
}
