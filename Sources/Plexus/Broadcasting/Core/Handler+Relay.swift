internal import Synchronization

extension Handler {
  /// Passes the elements of one hub on to a handler of another one, which serves the handlers of several hubs in one
  /// order.
  ///
  /// It is a handler of the first hub that sending threads call, and ends with the handler of the other one.
  final class Relay: Handler.SenderCalls {
    private struct State: Sendable {
      /// The receiver of the elements, until it is removed.
      var receiver: HandlerQueue.Report?
      /// The subscription whose place the relay takes, until it has.
      var reader: HubBase.Reader?
      /// The registration with the hub that sends them, from then on.
      var source: Handler?
    }

    private let hub: HubBase
    private let state: Locked<State>

    /// Creates a relay that passes nothing on yet.
    ///
    /// - Parameters:
    ///   - reader: The subscription whose place it takes. It ends with the receiver, also before that.
    ///   - hub: The hub of the receiver.
    init(from reader: HubBase.Reader, to hub: HubBase) {
      state = Locked(State(reader: reader))
      self.hub = hub
    }

    var isOrdered: Bool { true }

    /// Registers the receiver; called once, before ``attach()``.
    ///
    /// - Parameter recipe: The parts of the receiver.
    /// - Returns: The receiver, which has started.
    func start(_ recipe: Handler.Recipe) -> Handler {
      var recipe = recipe
      recipe.companion = Registration.Closure { [self] in detach() }
      recipe.limits.countsOwn = true
      let added = hub.add(recipe)
      state.withLock { $0.receiver = HandlerQueue.Report(receiver: added.handler) }
      return hub.start(added)
    }

    /// Takes the place of the subscription, unless the receiver has been removed.
    func attach() {
      let recipe = Handler.Recipe(isolation: nil, .direct(self))
      var effects = HubEffects()
      // Under the lock of the relay: a receiver that is removed meanwhile leaves the hub, too.
      let replaced = state.withLock { state -> (HubBase.Reader, Handler.Added)? in
        guard let reader = state.reader.take() else { return nil }
        let added = reader.core.replace(reader, with: recipe, of: nil, &effects) { unread, _ in
          unread
        }
        state.source = added.handler
        return (reader, added)
      }
      effects.perform()
      if let (reader, added) = replaced { reader.core.start(added) }
    }

    /// Leaves the source, because the receiver has been removed.
    private func detach() {
      // A subscription that was not replaced yet ends with its last reference.
      let former = state.withLock { state in
        defer { state = State() }
        return state
      }
      former.source?.cancel()
    }

    func call(_ item: HandlerQueue.Item, isWanted: Bool, in queue: HandlerQueue) {
      guard isWanted, let receiver = state.withLock({ $0.receiver }) else { return }
      hub.send(item.box, to: receiver)
    }

    func note() {}

    func takeBack(in queue: HandlerQueue) {}

    func removeOrphans() {
      let receiver = state.withLock { $0.receiver?.receiver }
      if receiver?.isOrphaned?() == true { receiver?.cancel() }
    }

    func end() {
      if let receiver = state.withLock({ $0.receiver?.receiver }) { hub.end(receiver) }
    }
  }
}

extension HubBase {
  /// Creates a hub for handlers only, each of which is sent elements of its own.
  @usableFromInline
  static func ofHandlers() -> HubBase {
    HubBase()
  }

  /// Sends an element to one handler.
  final func send(_ box: AnyBox, to receiver: HandlerQueue.Report) {
    guard let queue = receiver.receiver?.queue else { return }
    var effects = HubEffects()
    state.withLock { state in
      queue.enqueue(
        HandlerQueue.Item(box: box, sequence: state.sequence, report: receiver),
        &effects
      )
      state.sequence &+= 1
    }
    effects.perform()
  }

  /// Ends a handler after the elements sent to it so far.
  final func end(_ handler: Handler) {
    var effects = HubEffects()
    let isIdle = handler.queue.enqueue(endOf: handler, &effects)
    if isIdle {
      handler.finish()
      handler.remove()
    }
    effects.perform()
  }
}
