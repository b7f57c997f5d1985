// @unchecked Sendable because every field of the table is guarded by the lock of the hub that owns it.

internal import Synchronization

extension HubBase {
  /// The handlers of a hub.
  @usableFromInline
  final class HandlerTable: @unchecked Sendable {
    /// The queues, in the subscription order of their first handlers.
    @exclusivity(unchecked) @safe
    private(set) var queues: ContiguousArray<HandlerQueue> = []
    /// The queues of synchronous handlers, by actor.
    @exclusivity(unchecked) @safe
    private var queuesByActor = IdentityTable<HandlerQueue>()
    /// The number of handlers that end with an owner.
    @exclusivity(unchecked) @safe
    var ownedCount = 0

    /// Enqueues an element for the handlers.
    ///
    /// - Parameters:
    ///   - item: The element that was sent.
    ///   - effects: Receives the work to be done with no lock held.
    @usableFromInline
    func enqueue(_ item: HandlerQueue.Item, _ effects: inout HubEffects) {
      // By index: an iterator would retain the array.
      for index in queues.indices {
        item.report?.addPart()
        queues[index].enqueue(item, &effects)
      }
    }

    /// Returns the queue of a new handler, if it shares one.
    func queue(for recipe: Handler.Recipe) -> HandlerQueue? {
      recipe.isShared ? queuesByActor[recipe.isolation.map { ObjectIdentifier($0) }] : nil
    }

    /// Adds the queue of a new handler.
    func insert(_ queue: HandlerQueue) {
      if let last = queues.last, last.id > queue.id {
        // Its first handler has taken the place of a subscriber.
        queues.insert(queue, at: queues.firstSortedIndex { $0.id > queue.id })
      } else {
        queues.append(queue)
      }
      if queue.isShared { queuesByActor[queue.key] = queue }
    }

    /// Removes a queue that has no handlers anymore.
    func remove(_ queue: HandlerQueue) {
      if queue.isShared, queuesByActor[queue.key] === queue { queuesByActor[queue.key] = nil }
      // Most often, the newest one.
      guard queues.last !== queue else {
        queues.removeLast()
        return
      }
      let index = queues.firstSortedIndex { $0.id >= queue.id }
      if index < queues.count, queues[index] === queue { queues.remove(at: index) }
    }

    /// The handlers that end with an owner.
    var owned: [Handler] {
      ownedCount == 0 ? [] : queues.flatMap(\.owned)
    }

    /// Discards the elements before a number that are not handled yet.
    ///
    /// - Parameters:
    ///   - sequence: The number of the first element that is still to be handled.
    ///   - last: The element of that number, if it has been sent already.
    ///   - effects: Receives the discarded elements and the work to be done with no lock held.
    @usableFromInline
    func takeBack(
      before sequence: Int,
      keeping last: AnyBox? = nil,
      _ effects: inout HubEffects
    ) {
      effects.add { work in
        work.takesBack = true
        for queue in queues {
          queue.discard(before: sequence, keeping: last, into: &work.discarded)
        }
      }
    }

    /// The queues that sending threads drain.
    @usableFromInline var direct: ContiguousArray<HandlerQueue> {
      queues.filter { $0.direct != nil }
    }

    /// Ends the queues after the elements sent so far and a last one, if there is one; called with no lock held.
    func close(with last: AnyBox?) {
      for queue in queues { queue.close(with: last) }
    }
  }
}

extension HubBase: Handler.Source {
  /// Adds a handler.
  ///
  /// Can be called under a lock of the caller.
  ///
  /// - Parameters:
  ///   - recipe: The parts of the handler.
  ///   - host: The source that the handler retains, if that is not the hub.
  ///   - replay: The elements that the handler gets before all sent ones, oldest first.
  /// - Returns: The handler, to be started with no lock held.
  final func add(
    _ recipe: Handler.Recipe,
    of host: (any Handler.Source)? = nil,
    replaying replay: [AnyBox] = []
  ) -> Handler.Added {
    state.withLock { state in
      let isOpen = register(&state)
      let place = Place(id: state.lastID, isOpen: isOpen)
      return add(recipe, of: host, at: place, &state, replaying: replay)
    }
  }

  /// The place of a handler in subscription order.
  struct Place {
    let id: Int
    /// Whether the handler gets further elements.
    let isOpen: Bool
  }

  /// Adds a handler that is counted already.
  final func add(
    _ recipe: Handler.Recipe,
    of host: (any Handler.Source)?,
    at place: Place,
    _ state: inout State,
    replaying replay: [AnyBox]
  ) -> Handler.Added {
    let handlers = state.handlers ?? HandlerTable()
    let known = place.isOpen ? handlers.queue(for: recipe) : nil
    let queue = known ?? HandlerQueue(id: place.id, recipe: recipe)
    if place.isOpen {
      state.handlers = handlers
      if known == nil { handlers.insert(queue) }
      if recipe.isOrphaned != nil { handlers.ownedCount += 1 }
    }
    let handler = Handler(id: place.id, queue: queue, recipe: recipe, host: host, hub: self)
    let call = host?.call(recipe, of: handler) ?? recipe.call
    let isTaken = recipe.direct?.begin(with: replay) ?? false
    let parked = queue.add(handler, call, after: state.sequence, replaying: isTaken ? [] : replay)
    return Handler.Added(
      handler: handler,
      isFirst: known == nil,
      isOpen: place.isOpen,
      parked: parked
    )
  }

  /// Starts the delivery to an added handler; called with no lock held.
  @usableFromInline
  @discardableResult
  final func start(_ added: Handler.Added) -> Handler {
    added.parked?.resume()
    announceCount()
    let queue = added.handler.queue
    if added.isFirst { queue.start() } else { queue.attend() }
    // A finished hub sends no more elements.
    if !added.isOpen { queue.close(with: state.withLock { $0.last }) }
    return added.handler
  }

  /// Removes a handler; its closure is released now, or after the batch that is running.
  final func remove(_ handler: Handler) {
    let removal = take(handler)
    removal.perform()
    announceCount()
    if removal.isLastOfHub { onEmpty?() }
  }

  /// Takes out a handler; can be called under a lock of the caller.
  ///
  /// - Returns: The remains of the handler.
  final func take(_ handler: Handler) -> HandlerQueue.Removal {
    state.withLock { state in
      var removal = handler.queue.remove(handler)
      guard removal.isFirst, let handlers = state.handlers else { return removal }
      if handler.isOrphaned != nil { handlers.ownedCount -= 1 }
      if removal.isLast { handlers.remove(handler.queue) }
      removal.isLastOfHub = unregister(&state)
      return removal
    }
  }

  /// Notifies handlers that the source has sent an element that another thread delivers.
  final func note() {
    let queues = state.withLock { $0.handlers?.direct ?? [] }
    for queue in queues { queue.direct?.note() }
  }
}

extension Handler {
  /// A handler that has been added, to be started with no lock held.
  @usableFromInline
  struct Added: Sendable {
    let handler: Handler
    /// Whether its queue is new, and has to be started.
    let isFirst: Bool
    /// Whether the hub has not finished.
    let isOpen: Bool
    /// The task of its queue, if it has to be resumed.
    let parked: SuspendedTask?
  }
}
