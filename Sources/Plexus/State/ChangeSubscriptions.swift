internal import Synchronization

/// The subscribers to changes that count for one store and end with it.
@usableFromInline
final class ChangeSubscriptions: Sendable {
  private struct State: Sendable {
    var hubs = KeyTable<ID, HubCore>()
    /// Removes a subscriber from its selector; released at the end.
    var disconnect: (@Sendable (ID) -> Void)?
  }

  private let state = Locked(State())
  private let hasFinished = Atomic<Bool>(false)

  @usableFromInline
  init() {}

  /// Sets the closure that removes subscribers from their selectors; called once, before the first one.
  ///
  /// - Parameter disconnect: The closure. It can retain the store's engine, since the end releases it.
  @usableFromInline
  func onRemoval(_ disconnect: @escaping @Sendable (ID) -> Void) {
    state.withLock { $0.disconnect = disconnect }
  }

  /// The current number of subscribers; handlers of released owners are removed first.
  var count: Int {
    let entries = state.withLock { $0.hubs.entries }
    for entry in entries { entry.element.removeOrphans() }
    return state.withLock { $0.hubs.count }
  }

  /// Whether all subscribers have ended, and later ones end at once.
  @usableFromInline var isFinished: Bool {
    hasFinished.load(ordering: .acquiring)
  }

  @usableFromInline
  func insert(_ hub: HubCore, id: ID) {
    let isOpen = state.withLock { state in
      if !isFinished { _ = state.hubs.insert(hub, for: id, hash: id.hash) }
      return !isFinished
    }
    if !isOpen { hub.end() }
  }

  /// Removes a subscriber that was dropped or cancelled, also from its selector.
  @usableFromInline
  func remove(_ id: ID) {
    let (hub, disconnect) = state.withLock { state -> (HubCore?, (@Sendable (ID) -> Void)?) in
      let index = state.hubs.index(of: id, hash: id.hash)
      return (index.map { state.hubs.remove(at: $0).element }, state.disconnect)
    }
    withExtendedLifetime(hub) {}
    disconnect?(id)
  }

  /// Ends every stream after the elements sent before, in subscription order.
  ///
  /// - Returns: The subscribers.
  @discardableResult
  @usableFromInline
  func finish() -> [ID] {
    let (entries, disconnect) = state.withLock { state in
      hasFinished.store(true, ordering: .releasing)
      return (state.hubs.removeAll(), state.disconnect.take())
    }
    let subscribers = entries.sorted { $0.key.rawValue < $1.key.rawValue }
    for subscriber in subscribers { subscriber.element.end() }
    withExtendedLifetime(disconnect) {}
    return subscribers.map(\.key)
  }
}

extension ChangeSubscriptions {
  /// The identity of a subscriber to the changes of a selected value.
  @usableFromInline
  struct ID: Hashable, Sendable {
    let rawValue = UniqueID.next()

    @usableFromInline
    init() {}

    /// The number, spread over all bits.
    var hash: UInt64 { rawValue &* 0x9E37_79B9_7F4A_7C15 }
  }
}
