internal import Synchronization

/// The events of one type in one scope: the subscribers, the kept events, and what is under way.
///
/// Every change is made under one lock, in which events are also put into the buffers of streams and the queues
/// of handlers: that makes one order for all. What the change has to be followed by is done after it. Events are
/// in boxes here, so that nothing depends on their type.
@usableFromInline
final class EventChannel: Handler.Source {
  struct State: Sendable {
    var schedule = EventChannelState<AnyBox, EventChannel.Member>()
    /// In order of the first subscriber that each leads to.
    var outlets: ContiguousArray<EventChannel.Outlet> = []
    /// The queues of synchronous handlers, by actor.
    var queues: [ObjectIdentifier?: HandlerQueue] = [:]
    /// The callers that wait for posts that are under way, by the number of the post.
    var tickets: [Int: PostTicket] = [:]
    /// The number of the next event that is not kept.
    var sequence = 0
    /// The thread that began to handle the latest offer.
    var offerThread = ThreadID()
    /// The calls of the handler that was offered an event last.
    var offered: HandlerQueue.Calls?
    /// Whether a task takes the steps that were too many for one turn.
    var isBehind = false
    /// How many subscribers there can be before those without an owner are looked for.
    var crowd = 64
    /// Whether the bus has been released.
    var isFinished = false
    /// Whether the bus has forgotten the channel: a caller that comes too late looks for another one.
    var isRetired = false
  }

  let id = UniqueID.next()
  /// The type of events.
  let type: ObjectIdentifier
  let scope: EventScope?
  private weak let core: EventBusCore?
  let time: TimeSource
  let state = Locked(State())

  init(type: ObjectIdentifier, scope: EventScope?, core: EventBusCore) {
    self.type = type
    self.scope = scope
    self.core = core
    time = core.time
  }

  // MARK: - Posting

  /// The result of a post.
  @usableFromInline
  enum Posting: Sendable {
    /// The bus has forgotten the channel meanwhile.
    case isRetired
    case isDone(isKept: Bool)
  }

  /// Posts an event that is not kept, and that no caller waits for, unless there is something to be done first.
  ///
  /// - Parameter box: The event.
  /// - Returns: Whether it was posted.
  @usableFromInline
  func post(_ box: AnyBox) -> Bool {
    var effects = EventChannel.Effects()
    let isPosted = state.withLock { state in
      guard !state.isRetired, state.schedule.isIdle else { return false }
      fanOut(box, upTo: .max, nil, &state, &effects)
      return true
    }
    effects.perform()
    return isPosted
  }

  /// Posts an event.
  ///
  /// - Parameters:
  ///   - box: The event.
  ///   - persistence: Whether and how it is kept.
  ///   - ticket: The caller that waits for the end.
  /// - Returns: Whether the event is kept now.
  func post(_ box: AnyBox, _ persistence: EventPersistence, ticket: PostTicket?) -> Posting {
    let now = persistence.rule == nil ? 0 : time.now()
    var effects = EventChannel.Effects()
    let posting = state.withLock { state -> Posting in
      guard !state.isRetired else { return .isRetired }
      guard persistence.rule != nil || !state.schedule.isIdle else {
        fanOut(box, upTo: .max, ticket, &state, &effects)
        return .isDone(isKept: false)
      }
      let post = state.schedule.post(box, persistence, at: now)
      if let ticket {
        state.tickets[post] = ticket
        ticket.number = post
      }
      advance(&state, at: now, &effects)
      return .isDone(isKept: state.schedule.isKept(post: post, at: now))
    }
    perform(effects)
    return posting
  }

  /// Takes the steps that can be taken now, up to a number of deliveries; a task takes the others.
  func advance(
    _ state: inout State,
    at now: Nanoseconds,
    deliveries limit: Int = 512,
    _ effects: inout EventChannel.Effects
  ) {
    var deliveries = 0
    while !state.isBehind, let step = state.schedule.next(at: now) {
      switch step {
      case .offer(let offer):
        switch offer.member {
        case .stream(let stream):
          let isAccepted = stream.put(offer.element, &effects)
          state.schedule.finish(offer.number, as: isAccepted ? .succeeded : .failed)
        case .handler(let handler):
          let item = HandlerQueue.Item(
            box: offer.element,
            sequence: state.sequence,
            receiver: handler,
            report: EventChannel.Offer(number: offer.number, channel: self)
          )
          state.offered = handler.queue.calls
          effects.wake(handler.queue.enqueue(item), id: handler.queue.id)
        }
      case .fanOut(let box, let post, let last):
        fanOut(box, upTo: last, state.tickets.removeValue(forKey: post), &state, &effects)
      case .end(let post, let outcome):
        if let ticket = state.tickets.removeValue(forKey: post) {
          effects.more().ended.append((ticket, outcome))
        }
      }
      if case .fanOut = step { deliveries += max(1, state.outlets.count) } else { deliveries += 1 }
      if deliveries >= limit {
        state.isBehind = true
        effects.isBehind = true
      }
    }
    effects.release(state.schedule.takeReleased())
    if state.isFinished, state.schedule.isIdle { effects.finishes = true }
    effects.isEmpty = state.schedule.isEmpty
  }

  /// Gives an event that is not kept to every subscriber up to the given one.
  private func fanOut(
    _ box: AnyBox,
    upTo last: Int,
    _ ticket: PostTicket?,
    _ state: inout State,
    _ effects: inout EventChannel.Effects
  ) {
    var (notified, handled) = (0, 0)
    var discarded: ContiguousArray<HandlerQueue.Item> = []
    let sequence = state.sequence
    state.sequence &+= 1
    ticket?.fanOut(sequence)
    for outlet in state.outlets where outlet.id <= last {
      switch outlet {
      case .stream(let stream):
        notified += 1
        if stream.put(box, &effects) { handled += 1 }
      case .queue(let queue):
        ticket?.expectPart()
        let item = HandlerQueue.Item(box: box, sequence: sequence, last: last, report: ticket)
        effects.wake(queue.enqueue(item, discarding: &discarded), id: queue.id)
      }
    }
    effects.discard(discarded)
    if let ticket {
      let outcome = PostOutcome(notified: notified, handled: handled)
      effects.more().parts.append((ticket, outcome))
    }
  }

  /// A handler begins with what it was offered.
  ///
  /// - Returns: Whether it still has to.
  func start(_ offer: Int) -> Bool {
    let thread = ThreadID.current
    return state.withLock { state in
      state.offerThread = thread
      return state.schedule.start(offer)
    }
  }

  /// A handler has ended with what it was offered; called with no lock held.
  func finish(_ offer: Int, as ending: Handler.Ending) {
    change { state in state.schedule.finish(offer, as: ending) }
  }

  /// A caller waits no longer; called with no lock held.
  func abandon(_ ticket: PostTicket) {
    let now = time.now()
    let outcome = state.withLock { state -> PostOutcome? in
      let post = ticket.number
      guard state.tickets[post] === ticket else { return nil }
      state.tickets[post] = nil
      return state.schedule.progress(of: post, at: now)
    }
    ticket.abandon(outcome)
  }

  /// The calls that are under way of handlers that an event goes to, or that an offer in front of it was made to.
  ///
  /// - Parameter sequence: The number of the event, if it is on its way to all: calls for later ones are left out.
  ///   Until then a handler that comes later has nothing to do.
  /// - Returns: The calls.
  func runs(upTo sequence: Int) -> [HandlerRun] {
    let (outlets, offered) = state.withLock { ($0.outlets, $0.offered) }
    var runs: [HandlerRun] = []
    for case .queue(let queue) in outlets {
      if let run = queue.calls?.run(upTo: sequence) { runs.append(run) }
    }
    // The handler may have been removed.
    if let run = offered?.run(upTo: sequence) { runs.append(run) }
    return runs
  }

  /// Raises the priority of the handlers to that of a caller that waits for them.
  func raise(to priority: TaskPriority) {
    let outlets = state.withLock { $0.outlets }
    for case .queue(let queue) in outlets { queue.raise(to: priority) }
  }

  // MARK: - Kept events

  /// The kept events in posting order.
  @usableFromInline var pendingEvents: [AnyBox] {
    let now = time.now()
    return change { $0.schedule.pending(at: now) }
  }

  /// Keeps none of the events posted so far any longer.
  @usableFromInline
  func removePendingEvents() {
    change { $0.schedule.removePending() }
  }

  // MARK: - Changes

  /// Makes a change, takes the steps that it makes possible, and does afterwards what has to be done.
  @discardableResult
  func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
    let now = time.now()
    var effects = EventChannel.Effects()
    let result = state.withLock { state in
      let result = body(&state)
      advance(&state, at: now, &effects)
      return result
    }
    perform(effects)
    return result
  }

  /// Does what has to be done after a change, with no lock held.
  fileprivate func perform(_ effects: consuming EventChannel.Effects) {
    let (isEmpty, finishes, isBehind) = (effects.isEmpty, effects.finishes, effects.isBehind)
    effects.perform()
    if finishes { closeQueues() }
    if isEmpty, let scope { core?.forget(self, scope: scope) }
    if isBehind { catchUp() }
  }

  /// Takes the steps that were too many for one turn in a task, so that no caller is held up by them.
  private func catchUp() {
    Task.detached(priority: Task.currentPriority) { [self] in
      while takeTurn() { await Task.yield() }
    }
  }

  /// Takes steps for one turn.
  ///
  /// - Returns: Whether more are left.
  private func takeTurn(deliveries limit: Int = 512) -> Bool {
    let now = time.now()
    var effects = EventChannel.Effects()
    let isBehind = state.withLock { state in
      // The channel may have caught up because it was finished.
      guard state.isBehind else { return false }
      state.isBehind = false
      advance(&state, at: now, deliveries: limit, &effects)
      return state.isBehind
    }
    effects.isBehind = false
    perform(effects)
    return isBehind
  }

  // MARK: - Ending

  /// The bus has been released: streams end, handlers get what was posted before.
  func finish() {
    _ = takeTurn(deliveries: .max)
    let remains = change { state in
      state.isFinished = true
      var remains: [(stream: EventChannel.Stream, member: EventChannel.Member?)] = []
      for case .stream(let stream) in state.outlets {
        remains.append((stream, state.schedule.remove(stream.id)))
      }
      state.outlets.removeAll { if case .stream = $0 { true } else { false } }
      state.schedule.removePending()
      return remains
    }
    for (stream, _) in remains { stream.finish() }
  }

  private func closeQueues() {
    let outlets = state.withLock { $0.outlets }
    for case .queue(let queue) in outlets { queue.close() }
  }

  /// Lets the bus forget the channel if nothing would be lost; called under the lock of the bus.
  ///
  /// - Returns: Whether it may.
  func retire() -> Bool {
    state.withLock { state in
      guard state.schedule.isEmpty else { return false }
      state.isRetired = true
      return true
    }
  }
}

// MARK: - Subscribing

extension EventChannel {
  /// Registers a stream, which gets what is kept and then everything posted from now on.
  ///
  /// - Parameter make: Makes the stream with its place in subscription order; called under the lock.
  /// - Returns: Whether it is registered; otherwise the bus has forgotten the channel.
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

  /// Registers a handler, which gets what is kept and then everything posted from now on.
  ///
  /// - Parameters:
  ///   - recipe: The parts of the handler.
  ///   - now: The time, which the caller has looked up with no lock held.
  ///   - replaced: Handlers that are removed in the same moment.
  /// - Returns: The handler, to be started with no lock held, and what is left of the others; `nil` if
  ///   the bus has forgotten the channel.
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
      let key = recipe.isolation.map { ObjectIdentifier($0) }
      let known = recipe.suspends ? nil : state.queues[key]
      let queue = known ?? HandlerQueue(id: id, recipe: recipe)
      if known == nil {
        state.outlets.append(.queue(queue))
        if !recipe.suspends { state.queues[key] = queue }
      }
      let handler = Handler(
        id: id,
        start: state.sequence,
        queue: queue,
        recipe: recipe,
        source: self
      )
      _ = queue.add(handler, noted(recipe.call, id, queue.calls), replaying: [])
      state.schedule.add(.handler(handler))
      advance(&state, at: now, &effects)
      return EventChannel.Added(
        handler: handler,
        channel: self,
        isolation: recipe.isolation,
        isFirst: known == nil,
        isCrowded: state.schedule.memberCount > state.crowd,
        remains: remains,
        effects: effects
      )
    }
  }

  /// Returns a call such that what the handler starts knows which wait would be one for the handler itself.
  private func noted(
    _ call: Handler.Call,
    _ handler: Int,
    _ calls: HandlerQueue.Calls?
  ) -> Handler.Call {
    guard case .suspending(let body) = call, let calls else { return call }
    return .suspending { [id] box in
      let sequence = calls.sequence.load(ordering: .relaxed)
      let run = HandlerRun(channel: id, handler: handler, sequence: sequence)
      calls.begin(run)
      defer { run.end() }
      return await WaitScope.local.withValue(run) {
        await HandlerRun.$current.withValue(run) { await body(box) }
      }
    }
  }

  /// Removes a handler; called with no lock held.
  func remove(_ handler: Handler) {
    change { state in take(handler, &state) }.perform()
  }

  /// What is left of a handler that was removed, to be dealt with and released with no lock held.
  struct Remains: Sendable {
    fileprivate let removal: HandlerQueue.Removal
    fileprivate let outlet: EventChannel.Outlet?
    fileprivate let member: EventChannel.Member?

    func perform() {
      removal.perform()
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
    // A handler that removes itself will answer; another one may hang.
    let answers =
      queue.suspends
      ? HandlerRun.isCurrent(channel: id, handler: handler.id) : state.offerThread == .current
    let member = state.schedule.remove(handler.id, answers: answers)
    return Remains(removal: removal, outlet: outlet, member: member)
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

  /// Removes the handlers whose owners have been released, and what has been kept too long.
  func prune() {
    // Owners are looked at without the lock: loading a weak reference can make this the last one to hold it.
    let members = state.withLock { $0.schedule.members }
    for case .handler(let handler) in members where handler.isOrphaned?() == true {
      handler.cancel()
    }
    let now = time.now()
    change { state in
      state.schedule.dropExpired(at: now)
      state.crowd = max(64, 2 * state.schedule.memberCount)
    }
  }

  /// The number of subscribers, those without an owner left out.
  @usableFromInline var subscriberCount: Int {
    prune()
    return state.withLock { $0.isFinished ? 0 : $0.schedule.memberCount }
  }
}

extension EventChannel {
  /// A handler that has been added, and what remains to be done about it with no lock held.
  struct Added: Sendable {
    let handler: Handler
    fileprivate let channel: EventChannel
    fileprivate let isolation: (any Actor)?
    /// Whether its queue has to be started.
    fileprivate let isFirst: Bool
    fileprivate let isCrowded: Bool
    fileprivate let remains: [EventChannel.Remains]
    fileprivate let effects: EventChannel.Effects

    /// Starts the handler, and does what the addition has to be followed by.
    func start() {
      for remains in remains { remains.perform() }
      if isFirst { handler.queue.start(isolation: isolation) }
      channel.perform(effects)
      if isCrowded { channel.prune() }
    }
  }
}
