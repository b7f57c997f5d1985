internal import Synchronization

/// The subscribers to changes that count for one store and end with it.
@usableFromInline
final class ChangeSubscriptions: Sendable {
  private struct State: Sendable {
    var hubs = KeyTable<ID, HubBase>()
    /// The engine of the selectors; released at the end.
    var engine: Engine?
  }

  /// The parts of a store's engine that subscribers use.
  private struct Engine: Sendable {
    /// The hub of the synchronous handlers, which has one order for the subscribers of all selectors.
    let handlers: HubBase
    let disconnect: @Sendable (ID) -> Void
    let run: @Sendable (@escaping @Sendable () -> Void) -> Bool
  }

  private let state = Locked(State())
  private let hasFinished = Atomic<Bool>(false)

  @usableFromInline
  init() {}

  /// Sets the engine of the selectors; called once, before the first subscriber.
  ///
  /// The closures can retain the engine, since the end releases them.
  ///
  /// - Parameters:
  ///   - handlers: The hub of the synchronous handlers of all selectors.
  ///   - disconnect: A closure that removes a subscriber from its selector.
  ///   - run: A closure that calls another one between two actions, and returns whether it does.
  @usableFromInline
  func connect(
    handlers: HubBase,
    disconnect: @escaping @Sendable (ID) -> Void,
    run: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool
  ) {
    let engine = Engine(handlers: handlers, disconnect: disconnect, run: run)
    state.withLock { $0.engine = engine }
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
  func insert(_ hub: HubBase, id: ID) {
    let isOpen = state.withLock { state in
      if !isFinished { _ = state.hubs.insert(hub, for: id, hash: id.hash) }
      return !isFinished
    }
    if !isOpen { hub.end() }
  }

  /// Removes a subscriber that was dropped or cancelled, also from its selector.
  @usableFromInline
  func remove(_ id: ID) {
    let (_, engine) = state.withLock { state -> (HubBase?, Engine?) in
      let index = state.hubs.index(of: id, hash: id.hash)
      return (index.map { state.hubs.remove(at: $0).element }, state.engine)
    }
    engine?.disconnect(id)
  }

  /// Ends every stream after the elements sent before, in subscription order.
  ///
  /// - Returns: The subscribers.
  @discardableResult
  @usableFromInline
  func finish() -> [ID] {
    let (entries, engine) = state.withLock { state in
      hasFinished.store(true, ordering: .releasing)
      return (state.hubs.removeAll(), state.engine.take())
    }
    let subscribers = entries.sorted { $0.key.rawValue < $1.key.rawValue }
    for subscriber in subscribers { subscriber.element.end() }
    withExtendedLifetime(engine) {}
    return subscribers.map(\.key)
  }
}

extension ChangeSubscriptions: Handler.Host {
  @usableFromInline
  func replace(_ reader: HubBase.Reader, with recipe: Handler.Recipe) -> Handler? {
    // A handler that can suspend has a queue of its own.
    guard recipe.isShared, let engine = state.withLock({ $0.engine }) else { return nil }
    let relay = Handler.Relay(from: reader, to: engine.handlers)
    let handler = relay.start(recipe)
    // Between two actions, so that the changes are passed on in the order of the selectors.
    if !engine.run({ relay.attach() }) { relay.attach() }
    return handler
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
