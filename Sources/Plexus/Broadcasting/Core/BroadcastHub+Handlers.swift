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
    ///   - box: The element that was sent.
    ///   - sequence: Its number.
    ///   - last: The last subscriber that gets it.
    ///   - sender: The sender, or 0.
    ///   - woken: Receives the tasks to be resumed with no lock held.
    ///   - effects: Receives the other work to be done with no lock held.
    @usableFromInline
    func enqueue(
      _ box: AnyBox,
      sequence: Int,
      last: Int,
      from sender: UInt64,
      _ woken: inout ContiguousArray<Waiter.ParkedTask>,
      _ effects: inout HandlerQueue.Effects?
    ) {
      let hasOthers = !woken.isEmpty
      // By index: an iterator would retain the array.
      for index in queues.indices {
        let queue = queues[index]
        if let task = queue.enqueue(box, sequence: sequence, last: last, from: sender, &effects) {
          woken.append(Waiter.ParkedTask(id: queue.id, task: task))
        }
      }
      // Tasks are resumed in subscription order.
      if hasOthers { woken.sort { $0.id < $1.id } }
    }

    /// Returns the queue of a new handler, if it shares one.
    func queue(for recipe: Handler.Recipe) -> HandlerQueue? {
      recipe.isShared ? queuesByActor[recipe.isolation.map { ObjectIdentifier($0) }] : nil
    }

    /// Adds the queue of a new handler.
    func insert(_ queue: HandlerQueue) {
      queues.append(queue)
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
      _ effects: inout HandlerQueue.Effects?
    ) {
      let effects = HandlerQueue.Effects.of(&effects)
      effects.takesBack = true
      for queue in queues {
        queue.discard(before: sequence, keeping: last, into: &effects.discarded)
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
    var recipe = recipe
    recipe.limits.passedTag = passedTag
    return state.withLock { state in
      let isOpen = state.register()
      return add(recipe, isOpen: isOpen, &state, replaying: replay)
    }
  }

  /// Adds a handler that is counted already.
  final func add(
    _ recipe: Handler.Recipe,
    isOpen: Bool,
    _ state: inout State,
    replaying replay: [AnyBox]
  ) -> Handler.Added {
    let id = state.lastID
    let handlers = state.handlers ?? HandlerTable()
    let known = isOpen ? handlers.queue(for: recipe) : nil
    let queue = known ?? HandlerQueue(id: id, recipe: recipe)
    if isOpen {
      state.handlers = handlers
      if known == nil { handlers.insert(queue) }
      if recipe.isOrphaned != nil { handlers.ownedCount += 1 }
    }
    let handler = Handler(
      id: id,
      start: state.sequence,
      queue: queue,
      recipe: recipe,
      source: self
    )
    let parked = queue.add(handler, recipe.call, replaying: replay)
    return Handler.Added(
      handler: handler,
      isolation: recipe.isolation,
      isFirst: known == nil,
      isOpen: isOpen,
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
    let (removal, isLast) = state.withLock { state in
      let removal = handler.queue.remove(handler)
      guard removal.isFirst, let handlers = state.handlers else { return (removal, false) }
      if handler.isOrphaned != nil { handlers.ownedCount -= 1 }
      if removal.isLast { handlers.remove(handler.queue) }
      return (removal, state.unregister())
    }
    removal.perform()
    announceCount()
    if isLast { onEmpty?() }
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
    if let host = subscriber.core.host {
      recipe.limits = subscriber.handlerLimits
      if let handler = host.replace(subscriber, with: recipe) { return handler }
    }
    if subscriber.readsLog, subscriber.replay.isEmpty,
      let added = subscriber.core.replace(
        subscriber,
        at: subscriber.position.load(ordering: .relaxed),
        with: recipe
      )
    {
      return subscriber.core.start(added)
    }
    return subscriber.core.start(subscriber.hub.replace(subscriber, with: recipe))
  }
}

extension HubCore {
  /// Replaces a reader of the log by a handler, unless something has been sent since.
  @usableFromInline
  final func replace(
    _ reader: Reader,
    at position: Int,
    with recipe: Handler.Recipe
  ) -> Handler.Added? {
    var garbage = LogGarbage()
    defer { garbage.release() }
    return state.withLock { state in
      guard reader.isRegistered, state.sequence == position else { return nil }
      garbage = removeFromLog(reader, &state)
      state.lastID &+= 1
      return add(recipe, isOpen: !state.isFinished, &state, replaying: [])
    }
  }

  /// The parts of the log that a removed reader leaves behind, to be released with no lock held.
  fileprivate struct LogGarbage {
    var link: LogLink?
    var read = ReadElements()

    func release() {
      read.release()
    }
  }

  /// Removes a reader from the log; it still counts as a subscriber.
  ///
  /// - Returns: The parts of the log to be released with no lock held.
  fileprivate final func removeFromLog(_ reader: Reader, _ state: inout State) -> LogGarbage {
    reader.isRegistered = false
    reader.isCancelled.store(true, ordering: .releasing)
    state.logReaders -= 1
    var garbage = LogGarbage()
    garbage.read = state.takeRead()
    if state.logReaders == 0, state.tailStart != state.sequence { garbage.link = state.tail.take() }
    return garbage
  }
}

extension BroadcastHub {
  /// The objects of a replaced subscriber, to be released with no lock held.
  struct Replaced {
    fileprivate var log = HubCore.LogGarbage()
    fileprivate var elements: ContiguousArray<Element> = []
    fileprivate var buffer = Ring<Element>()

    func release() {
      log.release()
      withExtendedLifetime((elements, buffer)) {}
    }
  }

  /// Replaces a subscriber that has not been read yet by a handler.
  @usableFromInline
  func replace(_ subscriber: Subscriber<Element>, with recipe: Handler.Recipe) -> Handler.Added {
    var recipe = recipe
    recipe.limits = subscriber.handlerLimits
    var garbage = Replaced()
    defer { garbage.release() }
    return state.withLock { state in
      // The source can have finished since the registration.
      let isOpen = subscriber.isRegistered && !state.isFinished
      let elements = takeOver(subscriber, &state, &garbage)
      state.lastID &+= 1
      return add(recipe, isOpen: isOpen, &state, replaying: elements)
    }
  }

  /// Ends a subscriber that has not been read yet; it still counts.
  ///
  /// - Returns: The elements that it would have read.
  func takeOver(
    _ subscriber: Subscriber<Element>,
    _ state: inout State,
    _ garbage: inout Replaced
  ) -> [AnyBox] {
    let isRegistered = subscriber.isRegistered
    var elements = ContiguousArray(subscriber.replay.reversed())
    var position = subscriber.position.load(ordering: .relaxed)
    let cutoff = cutoff.load(ordering: .relaxed)
    if position <= cutoff {
      // A reset since the registration has taken back the elements before it.
      garbage.elements = elements
      elements = []
      position = cutoff
    }
    switch subscriber.source {
    case .log:
      var chunk = subscriber.chunk
      for sequence in position..<max(position, state.sequence) {
        while let run = chunk?.run, sequence >= run.limit { chunk = chunk?.follower }
        if let run = chunk?.run { elements.append(run[sequence]) }
      }
      if isRegistered { garbage.log = removeFromLog(subscriber, &state) }
    case .window(let limit):
      guard isRegistered else { break }
      let others = readers(&state)
      for unread in (0..<min(state.sequence - position, limit)).reversed() {
        if let element = others.window[others.window.count - 1 - unread] {
          elements.append(element)
        }
      }
      state.windowReaders -= 1
      others.windowLimits.remove(limit)
      garbage.elements += others.trimWindow()
      garbage.log.read = state.takeRead()
    case .buffer(let buffer):
      for offset in 0..<buffer.elements.count {
        if let element = buffer.elements[offset] { elements.append(element) }
      }
      guard isRegistered else { break }
      garbage.buffer = buffer.elements
      buffer.elements = Ring()
      readers(&state).remove(buffer)
    }
    subscriber.isRegistered = false
    subscriber.isCancelled.store(true, ordering: .releasing)
    return elements.map { Box($0) }
  }
}

extension Subscriber {
  /// The limits of a handler that gets what the subscriber would have got.
  @usableFromInline var handlerLimits: Handler.Limits {
    switch source {
    case .log: Handler.Limits()
    case .window(let limit): Handler.Limits(BufferingPolicy<Element>.bufferingNewest(limit))
    case .buffer(let buffer): buffer.handlerLimits
    }
  }
}

extension HubCore.PrivateBuffer {
  /// The limits of a handler that gets what the buffer would have got.
  fileprivate var handlerLimits: Handler.Limits {
    var limits: Handler.Limits
    switch overflow {
    case .none: limits = Handler.Limits()
    case .dropsNewest(let limit):
      limits = Handler.Limits(BufferingPolicy<Element>.bufferingOldest(limit))
    case .dropsOldest(let limit):
      limits = Handler.Limits(BufferingPolicy<Element>.bufferingNewest(limit))
    }
    limits.ignoredSender = ignoredSender
    limits.passedTag = passedTag
    return limits
  }
}
