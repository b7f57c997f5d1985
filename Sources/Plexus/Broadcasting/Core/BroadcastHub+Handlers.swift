// @unchecked Sendable because every field of the table is guarded by the lock of the hub that owns it.

public import Synchronization

extension HubCore {
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

extension HubCore: Handler.Source {
  /// Adds a handler.
  ///
  /// Can be called under a lock of the caller.
  ///
  /// - Parameters:
  ///   - recipe: The parts of the handler.
  ///   - replay: The elements that the handler gets before all sent ones, oldest first.
  /// - Returns: The handler, to be started with no lock held.
  final func add(_ recipe: Handler.Recipe, replaying replay: [AnyBox] = []) -> Handler.Added {
    state.withLock { state in
      let isOpen = register(&state)
      return add(recipe, at: Place(id: state.lastID, isOpen: isOpen), &state, replaying: replay)
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
    let handler = Handler(id: place.id, queue: queue, recipe: recipe, hub: self)
    let call = recipe.source?.call(recipe, of: handler) ?? recipe.call
    let parked = queue.add(handler, call, after: state.sequence, replaying: replay)
    return Handler.Added(
      handler: handler,
      isolation: recipe.isolation,
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
    if added.isFirst { queue.start(isolation: added.isolation) } else { queue.attend() }
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
}

extension Handler {
  /// A handler that has been added, to be started with no lock held.
  @usableFromInline
  struct Added: Sendable {
    let handler: Handler
    let isolation: (any Actor)?
    /// Whether its queue is new, and has to be started.
    let isFirst: Bool
    /// Whether the hub has not finished.
    let isOpen: Bool
    /// The task of its queue, if it has to be resumed.
    let parked: SuspendedTask?
  }
}

// MARK: - Handlers in place of subscriptions

extension Subscription {
  /// Ends the subscription, which has just been made, and registers a handler in its place.
  ///
  /// The handler gets the elements that the subscription would have got. It is registered with the source that
  /// created the subscription, even if another broadcaster forwarded it: all handlers of a source have one order.
  ///
  /// - Parameter recipe: The parts of the handler.
  /// - Returns: The handler, which has started.
  @inlinable
  func handler(_ recipe: consuming Handler.Recipe) -> Handler {
    if let filter = subscriber.filter { recipe = recipe.removingDuplicates(filter) }
    if let companion = subscriber.companion.take() { recipe.companion = companion }
    let host = subscriber.host
    if host == nil, subscriber.readsLog, subscriber.replay.isEmpty,
      let added = subscriber.core.replace(
        subscriber,
        at: subscriber.position.load(ordering: .relaxed),
        with: recipe
      )
    {
      return subscriber.core.start(added)
    }
    recipe.limits = subscriber.handlerLimits
    return host?.replace(subscriber, with: recipe)
      ?? subscriber.core.serve(recipe, inPlaceOf: subscriber)
  }
}

extension HubCore {
  /// Registers a handler in place of a subscriber that has not been read yet, and starts it.
  @usableFromInline
  final func serve(_ recipe: Handler.Recipe, inPlaceOf reader: Reader) -> Handler {
    var effects = HubEffects()
    let added = replace(reader, with: recipe, &effects) { $0 }
    effects.perform()
    return start(added)
  }

  /// Replaces a reader of the log by a handler, unless something has been sent since.
  @usableFromInline
  final func replace(
    _ reader: Reader,
    at position: Int,
    with recipe: Handler.Recipe
  ) -> Handler.Added? {
    var effects = HubEffects()
    let added = state.withLock { state -> Handler.Added? in
      guard reader.isRegistered, state.sequence == position else { return nil }
      reader.isCancelled.store(true, ordering: .releasing)
      state.remove(reader, &effects)
      let place = Place(id: reader.id, isOpen: !state.isFinished)
      return add(recipe, at: place, &state, replaying: [])
    }
    effects.perform()
    return added
  }
}

extension BroadcastHub {
  /// Ends a subscriber that has not been read yet; it still counts.
  ///
  /// - Returns: The elements that it would have read.
  func takeOver(
    _ subscriber: Subscriber<Element>,
    _ state: inout State,
    _ effects: inout HubEffects
  ) -> [AnyBox] {
    subscriber.isCancelled.store(true, ordering: .releasing)
    var elements = ContiguousArray(subscriber.replay.reversed())
    var position = subscriber.position.load(ordering: .relaxed)
    let cutoff = cutoff.load(ordering: .relaxed)
    if position <= cutoff {
      // A reset since the registration has taken back the elements before it.
      effects.release(elements)
      elements = []
      position = cutoff
    }
    if case .window(let limit) = subscriber.source {
      guard subscriber.isRegistered else { return elements.map { Box($0) } }
      let others = Self.readers(&state)
      for unread in (0..<min(state.sequence - position, limit)).reversed() {
        if let element = others.window[others.window.count - 1 - unread] {
          elements.append(element)
        }
      }
      subscriber.isRegistered = false
      state.windowReaders -= 1
      others.windowLimits.remove(limit)
      effects.release(others.trimWindow())
      state.takeRead(&effects)
    } else {
      let own = subscriber.ownBuffer
      if subscriber.readsLog {
        var chunk = subscriber.chunk
        for sequence in position..<max(position, state.sequence) {
          while let own, own.place.load(ordering: .relaxed) <= sequence,
            let element = own.popFirst()
          {
            elements.append(element)
          }
          while let run = chunk?.run, sequence >= run.limit { chunk = chunk?.follower }
          if let run = chunk?.run { elements.append(run[sequence]) }
        }
      }
      while let element = own?.popFirst() { elements.append(element) }
      if subscriber.isRegistered { state.remove(subscriber, &effects) }
    }
    return elements.map { Box($0) }
  }
}

extension Subscriber {
  /// The limits of a handler that gets what the subscriber would have got.
  @usableFromInline var handlerLimits: SubscriberLimits {
    if case .window(let limit) = source { return SubscriberLimits(.newest(limit)) }
    return buffer?.limits ?? SubscriberLimits()
  }
}
