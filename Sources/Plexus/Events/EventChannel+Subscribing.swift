internal import Synchronization

extension EventChannel {
  /// Registers a stream for the retained events and those posted from now on.
  ///
  /// - Parameter make: A closure that creates the stream with its place in subscription order, under the lock.
  /// - Returns: Whether it was registered; `false` if the bus has dropped the channel.
  @usableFromInline
  func insert(_ make: (_ id: Int) -> EventChannel.Stream) -> Bool {
    change { state in
      guard !state.isRetired else { return false }
      let stream = make(state.schedule.nextID)
      state.schedule.add(.stream(stream))
      state.outlets.append(.stream(stream))
      return true
    }
  }

  /// Registers a handler for the retained events and those posted from now on.
  ///
  /// - Parameters:
  ///   - recipe: The parts of the handler.
  ///   - now: The time, read with no lock held.
  ///   - replaced: The handlers to remove atomically.
  /// - Returns: The handler to start with no lock held and the remains of the replaced ones, or `nil` if the bus
  ///   has dropped the channel.
  func add(
    _ recipe: Handler.Recipe,
    at now: Nanoseconds,
    replacing replaced: [Handler] = []
  ) -> EventChannel.Added? {
    state.withLock { state in
      guard !state.isRetired else { return nil }
      var effects = EventChannel.Effects()
      let remains = replaced.map { handler in
        _ = handler.mark()
        return take(handler, &state)
      }
      let id = state.schedule.nextID
      let (handler, isFirst, _) = attach(recipe, id: id, &state)
      state.schedule.add(.handler(handler))
      advance(&state, at: now, &effects)
      return added(handler, recipe, isFirst: isFirst, remains, effects, state)
    }
  }

  /// Adds a handler to its queue, which is created if necessary.
  ///
  /// - Parameters:
  ///   - recipe: The parts of the handler.
  ///   - id: The place of the handler in subscription order.
  ///   - unread: The events that the handler gets first.
  ///   - state: The state.
  /// - Returns: The handler, whether its queue is new, and the task to resume with no lock held.
  @inline(__always)
  private func attach(
    _ recipe: Handler.Recipe,
    id: Int,
    replaying unread: [AnyBox] = [],
    _ state: inout State
  ) -> (handler: Handler, isFirst: Bool, parked: SuspendedTask?) {
    let key = recipe.isolation.map { ObjectIdentifier($0) }
    let known = recipe.suspends ? nil : state.queues[key]
    let queue = known ?? HandlerQueue(id: id, recipe: recipe)
    if known == nil {
      if state.outlets.last.map({ $0.id > id }) ?? false {
        state.outlets.insert(.queue(queue), at: state.outlets.firstSortedIndex { $0.id > id })
      } else {
        state.outlets.append(.queue(queue))
      }
      raisedPriority.store(0, ordering: .relaxed)
      if !recipe.suspends { state.queues[key] = queue }
    }
    let handler = Handler(
      id: id,
      start: state.sequence,
      queue: queue,
      recipe: recipe,
      source: self,
      retainsSource: true
    )
    let call = noted(recipe.call, handler, isolation: recipe.isolation)
    return (handler, known == nil, queue.add(handler, call, replaying: unread))
  }

  /// Wraps an asynchronous call so that its tasks carry the run, which detects waits for the handler itself.
  private func noted(
    _ call: Handler.Call,
    _ handler: Handler,
    isolation: (any Actor)?
  ) -> Handler.Call {
    guard case .suspending(let body) = call, let calls = handler.queue.calls else { return call }
    return .suspending { [id] box in
      let sequence = calls.sequence.load(ordering: .relaxed)
      let run = HandlerRun(channel: id, handler: handler.id, sequence: sequence)
      calls.begin(run)
      defer { run.end() }
      return await run.call(body, with: box, of: handler, isolation: isolation)
    }
  }

  /// Removes a handler; called with no lock held.
  func remove(_ handler: Handler) {
    change { state in take(handler, &state) }.perform()
  }

  /// The parts of a removed handler, to be processed and released with no lock held.
  struct Remains: Sendable {
    fileprivate let removal: HandlerQueue.Removal
    fileprivate let outlet: EventChannel.Outlet?
    fileprivate let member: EventChannel.Member?
    /// The offer whose result the handler, which has removed itself, can still report.
    fileprivate let answer: (channel: EventChannel, offer: Int)?

    func perform() {
      removal.perform()
      if let answer { answer.channel.limitAnswer(to: answer.offer) }
    }
  }

  private func take(_ handler: Handler, _ state: inout State) -> Remains {
    let queue = handler.queue
    let removal = queue.remove(handler)
    var outlet: EventChannel.Outlet?
    if removal.isLast {
      outlet = removeOutlet(queue.id, &state)
      if !queue.suspends, state.queues[queue.key] === queue { state.queues[queue.key] = nil }
    }
    // A handler that removes itself still returns a result; another one may hang.
    let answers =
      queue.suspends
      ? HandlerRun.isCurrent(channel: id, handler: handler.id) : state.offerThread == .current
    let member = state.schedule.remove(handler.id, answers: answers)
    let offer = answers ? state.schedule.startedOffer(of: handler.id) : nil
    return Remains(
      removal: removal,
      outlet: outlet,
      member: member,
      answer: offer.map { (self, $0) }
    )
  }

  @usableFromInline
  func removeStream(_ id: Int) {
    let remains = change { state in (state.schedule.remove(id), removeOutlet(id, &state)) }
    withExtendedLifetime(remains) {}
  }

  private func removeOutlet(_ id: Int, _ state: inout State) -> EventChannel.Outlet? {
    let index = state.outlets.firstSortedIndex { $0.id >= id }
    guard index < state.outlets.count, state.outlets[index].id == id else { return nil }
    return state.outlets.remove(at: index)
  }

  /// Removes handlers with a released owner, and expired events.
  func prune() {
    // Owners are checked without the lock, because loading a weak reference can make this the last owner.
    let members = state.withLock { $0.schedule.members }
    for case .handler(let handler) in members where handler.isOrphaned?() == true {
      handler.cancel()
    }
    // The handlers of a view of the stream are among them.
    for case .stream(let stream) in members { stream.hub.removeOrphans() }
    let now = time.now()
    change { state in
      state.schedule.dropExpired(at: now)
      state.crowd = max(64, 2 * state.schedule.memberCount)
    }
  }

  /// The number of subscribers, excluding handlers with a released owner.
  @usableFromInline var subscriberCount: Int {
    prune()
    return state.withLock { $0.isFinished ? 0 : $0.schedule.memberCount }
  }
}

extension EventChannel {
  /// Returns a handler that has been added, with the work that remains; called under the lock.
  private func added(
    _ handler: Handler,
    _ recipe: Handler.Recipe,
    isFirst: Bool,
    _ remains: [EventChannel.Remains],
    _ effects: EventChannel.Effects,
    _ state: State
  ) -> EventChannel.Added {
    EventChannel.Added(
      handler: handler,
      channel: self,
      isolation: recipe.isolation,
      isFirst: isFirst,
      isCrowded: state.schedule.memberCount > state.crowd,
      remains: remains,
      effects: effects
    )
  }

  /// A handler that has been added, and the work that remains to be done with no lock held.
  struct Added: Sendable {
    let handler: Handler
    fileprivate let channel: EventChannel
    fileprivate let isolation: (any Actor)?
    /// Whether its queue must be started.
    fileprivate let isFirst: Bool
    fileprivate let isCrowded: Bool
    fileprivate let remains: [EventChannel.Remains]
    fileprivate let effects: EventChannel.Effects

    /// Starts the handler and performs the effects of the addition.
    func start() {
      for remains in remains { remains.perform() }
      if isFirst { handler.queue.start(isolation: isolation) }
      channel.perform(effects)
      if isCrowded { channel.prune() }
    }
  }
}

extension EventChannel: Handler.Host {
  /// Registers a handler in place of a stream that has not been read, as if it had been registered with the bus.
  ///
  /// Retained events that the stream has accepted are retained again and offered to the handler, unless the stream has
  /// received other events since.
  @usableFromInline
  func replace(_ reader: HubCore.Reader, with recipe: Handler.Recipe) -> Handler? {
    // A view takes its events on the posting thread, as the stream does.
    guard recipe.direct == nil else { return nil }
    let now = time.now()
    var replaced: (EventChannel.Outlet, EventChannel.Member?)?
    let added = state.withLock { state -> EventChannel.Added? in
      let index = state.outlets.lastIndex { outlet in
        if case .stream(let stream) = outlet { stream.hub === reader.core } else { false }
      }
      // The bus has been released.
      guard let index else { return nil }
      var effects = EventChannel.Effects()
      let outlet = state.outlets.remove(at: index)
      let id = outlet.id
      var unread = reader.core.takeUnread(of: reader)
      if state.schedule.revoke(id, unread) { unread = [] }
      let (handler, isFirst, parked) = attach(recipe, id: id, replaying: unread, &state)
      effects.wake(parked, id: handler.queue.id)
      replaced = (outlet, state.schedule.replace(id, with: .handler(handler)))
      advance(&state, at: now, &effects)
      return self.added(handler, recipe, isFirst: isFirst, [], effects, state)
    }
    added?.start()
    // The queue can be idle although the handler has events to handle.
    added?.handler.queue.attend()
    withExtendedLifetime(replaced) {}
    return added?.handler
  }
}
