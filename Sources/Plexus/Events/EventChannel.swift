/// The events of one type in one scope: who is subscribed, what is kept, and what is under way.
///
/// Every change is made under one lock, in which events are also put into the buffers of streams and
/// the queues of handlers: that makes one order for all. What the change has to be followed by is done
/// after it.
final class EventChannel<E: Event>: AnyEventChannel {
  private struct State: Sendable {
    var schedule = EventChannelState<E, EventMember<E>>()
    /// In order of the first subscriber that each leads to.
    var outlets: ContiguousArray<EventOutlet<E>> = []
    /// The lanes of synchronous handlers.
    var lanes: [EventLane<E>.Key: EventLane<E>] = [:]
    /// Who waits for posts that are under way, by the number of the post.
    var tickets: [Int: PostTicket] = [:]
    /// How many subscribers there may be before those without an owner are looked for.
    var crowd = 64
    /// Whether the bus has been released.
    var isFinished = false
    /// Whether the bus has forgotten the channel: whoever comes too late looks for another one.
    var isRetired = false
  }

  let id = UniqueID.next()
  let scope: EventScope?
  private weak let core: EventBusCore?
  private let time: TimeSource
  private let state = Locked(State())

  init(scope: EventScope?, core: EventBusCore) {
    self.scope = scope
    self.core = core
    time = core.time
  }

  // MARK: - Posting

  /// What was asked of a channel that the bus has forgotten meanwhile.
  enum Posting: Sendable {
    case isRetired
    case isDone(isKept: Bool)
  }

  /// Posts an event.
  ///
  /// - Parameters:
  ///   - event: The event.
  ///   - persistence: What it says of itself.
  ///   - ticket: Who waits for the end.
  /// - Returns: Whether the event is kept now.
  func post(_ event: E, _ persistence: EventPersistence, ticket: PostTicket?) -> Posting {
    let now = persistence.rule == nil ? 0 : time.now()
    let (posting, aftermath) = state.withLock { state -> (Posting, EventAftermath<E>) in
      var aftermath = EventAftermath<E>()
      guard !state.isRetired else { return (.isRetired, aftermath) }
      guard persistence.rule != nil || !state.schedule.isIdle else {
        fanOut(event, upTo: .max, ticket, &state, &aftermath)
        return (.isDone(isKept: false), aftermath)
      }
      let post = state.schedule.post(event, persistence, at: now)
      if let ticket { state.tickets[post] = ticket }
      advance(&state, at: now, &aftermath)
      return (.isDone(isKept: state.schedule.isKept(post: post, at: now)), aftermath)
    }
    carryOut(aftermath)
    return posting
  }

  /// Takes all steps that can be taken now.
  private func advance(
    _ state: inout State,
    at now: Nanoseconds,
    _ aftermath: inout EventAftermath<E>
  ) {
    while let step = state.schedule.next(at: now) {
      switch step {
      case .offer(let offer):
        switch offer.member {
        case .stream(let stream):
          let isAccepted = stream.offer(offer.element, &aftermath)
          state.schedule.finish(offer.number, as: isAccepted ? .succeeded : .failed)
        case .handler(let handler):
          let lane = handler.lane
          let event = offer.element
          aftermath.wake(lane.enqueue(event, for: handler, offer: offer.number, of: self))
        }
      case .fanOut(let event, let post, let last):
        let ticket = state.tickets.removeValue(forKey: post)
        fanOut(event, upTo: last, ticket, &state, &aftermath)
      case .end(let post, let outcome):
        aftermath.end(state.tickets.removeValue(forKey: post), with: outcome)
      }
    }
    aftermath.release(state.schedule.takeReleased())
    if state.isFinished, state.schedule.isIdle { endLanes(&state, &aftermath) }
    aftermath.isEmpty = state.schedule.isEmpty
  }

  /// Gives an event that is not kept to every subscriber up to the given one.
  private func fanOut(
    _ event: E,
    upTo last: Int,
    _ ticket: PostTicket?,
    _ state: inout State,
    _ aftermath: inout EventAftermath<E>
  ) {
    var (notified, handled) = (0, 0)
    for outlet in state.outlets where outlet.id <= last {
      switch outlet {
      case .stream(let stream):
        notified += 1
        if stream.offer(event, &aftermath) { handled += 1 }
      case .lane(let lane):
        aftermath.wake(lane.enqueue(event, upTo: last, ticket: ticket))
      }
    }
    aftermath.endPart(ticket, notified: notified, handled: handled)
  }

  /// A handler begins with what it was offered.
  ///
  /// - Returns: Whether it still has to.
  func start(_ offer: Int) -> Bool {
    state.withLock { $0.schedule.start(offer) }
  }

  /// A handler has ended with what it was offered; called with no lock held.
  func finish(_ offer: Int, as ending: EventChannelState<E, EventMember<E>>.Ending) {
    change { state in state.schedule.finish(offer, as: ending) }
  }

  // MARK: - Subscribing

  /// Registers a stream, which gets what is kept and then everything posted from now on.
  ///
  /// - Returns: The subscription; `nil` if the bus has forgotten the channel.
  func subscription(bufferingPolicy: BufferingPolicy<E>) -> Subscription<E>? {
    change { state -> Subscription<E>? in
      guard !state.isRetired else { return nil }
      let id = state.schedule.nextID
      let stream = EventStream(id: id, bufferingPolicy: bufferingPolicy) { [weak self] in
        self?.removeStream(id)
      }
      let subscription = stream.hub.subscription(bufferingPolicy: bufferingPolicy)
      state.schedule.add(.stream(stream))
      state.outlets.append(.stream(stream))
      return subscription
    }
  }

  /// Registers a handler, which gets what is kept and then everything posted from now on.
  ///
  /// - Parameters:
  ///   - recipe: What to make it from.
  ///   - replaced: Handlers that are removed in the same moment.
  /// - Returns: The handler, to be started with no lock held, and what is left of the others; `nil` if
  ///   the bus has forgotten the channel.
  func add(
    _ recipe: EventHandlerRecipe<E>,
    replacing replaced: [EventHandler<E>] = []
  ) -> AddedEventHandler<E>? {
    let now = time.now()
    return state.withLock { state in
      guard !state.isRetired else { return nil }
      var aftermath = EventAftermath<E>()
      let remains = replaced.map { take($0, &state) }
      let id = state.schedule.nextID
      let key =
        recipe.suspends
        ? nil : EventLane<E>.Key(isolation: recipe.isolation.map { ObjectIdentifier($0) })
      let known = key.flatMap { state.lanes[$0] }
      let lane = known ?? EventLane(id: id, key: key, channel: self.id)
      if known == nil {
        state.outlets.append(.lane(lane))
        if let key { state.lanes[key] = lane }
      }
      let handler = EventHandler(id: id, lane: lane, channel: self, recipe: recipe)
      lane.add(handler)
      state.schedule.add(.handler(handler))
      advance(&state, at: now, &aftermath)
      let isCrowded = state.schedule.memberCount > state.crowd
      return AddedEventHandler(
        handler: handler,
        channel: self,
        isolation: recipe.isolation,
        isFirst: known == nil,
        isCrowded: isCrowded,
        replaced: replaced,
        remains: remains,
        aftermath: aftermath
      )
    }
  }

  /// Removes a handler; called with no lock held.
  func remove(_ handler: EventHandler<E>) {
    let remains = change { state in take(handler, &state) }
    remains.lane.carryOut()
  }

  /// What is left of a handler that was removed, to be dealt with and released without a lock.
  struct Remains: Sendable {
    fileprivate var lane: EventLane<E>.Remains
    private var outlet: EventOutlet<E>?
    private var member: EventMember<E>?

    fileprivate init(
      lane: EventLane<E>.Remains,
      outlet: EventOutlet<E>?,
      member: EventMember<E>?
    ) {
      (self.lane, self.outlet, self.member) = (lane, outlet, member)
    }

    func carryOut() {
      lane.carryOut()
    }
  }

  private func take(_ handler: EventHandler<E>, _ state: inout State) -> Remains {
    let remains = handler.lane.remove(handler)
    var outlet: EventOutlet<E>?
    if remains.isLast {
      outlet = removeOutlet(handler.lane.id, &state)
      if let key = handler.lane.key, state.lanes[key] === handler.lane { state.lanes[key] = nil }
    }
    return Remains(lane: remains, outlet: outlet, member: state.schedule.remove(handler.id))
  }

  private func removeStream(_ id: Int) {
    let remains = change { state in (state.schedule.remove(id), removeOutlet(id, &state)) }
    withExtendedLifetime(remains) {}
  }

  private func removeOutlet(_ id: Int, _ state: inout State) -> EventOutlet<E>? {
    var (low, high) = (0, state.outlets.count)
    while low < high {
      let middle = (low + high) / 2
      if state.outlets[middle].id < id { low = middle + 1 } else { high = middle }
    }
    guard low < state.outlets.count, state.outlets[low].id == id else { return nil }
    return state.outlets.remove(at: low)
  }

  /// Removes the handlers whose owners have gone, and what has been kept too long.
  func prune() {
    // Owners are looked at without the lock: whoever loads a weak reference may be the last to hold it.
    let members = state.withLock { $0.schedule.members }
    for case .handler(let handler) in members where handler.isOrphaned?() == true {
      handler.remove()
    }
    let now = time.now()
    change { state in
      state.schedule.dropExpired(at: now)
      state.crowd = max(64, 2 * state.schedule.memberCount)
    }
  }

  /// The number of subscribers, those without an owner left out.
  var subscriberCount: Int {
    prune()
    return state.withLock { $0.isFinished ? 0 : $0.schedule.memberCount }
  }

  // MARK: - Kept events

  /// The kept events in posting order.
  var pendingEvents: [E] {
    let now = time.now()
    return change { $0.schedule.pending(at: now) }
  }

  /// Keeps none of the events posted so far any longer.
  func removePendingEvents() {
    change { $0.schedule.removePending() }
  }

  // MARK: - Ending

  /// The bus has been released: streams end, handlers get what was posted before.
  func finish() {
    let streams = state.withLock { state in
      state.isFinished = true
      return state.outlets.compactMap { outlet in
        if case .stream(let stream) = outlet { stream } else { nil }
      }
    }
    for stream in streams {
      stream.hub.finish()
      removeStream(stream.id)
    }
    change { $0.schedule.removePending() }
  }

  private func endLanes(_ state: inout State, _ aftermath: inout EventAftermath<E>) {
    for case .lane(let lane) in state.outlets { aftermath.finishedLanes.append(lane) }
  }

  /// Lets the bus forget the channel if nothing would be lost.
  ///
  /// - Returns: Whether it may.
  func retire() -> Bool {
    state.withLock { state in
      guard state.schedule.isEmpty else { return false }
      state.isRetired = true
      return true
    }
  }

  /// Makes a change, takes the steps that it makes possible, and does afterwards what has to be done.
  private func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
    let now = time.now()
    let (result, aftermath) = state.withLock { state in
      var aftermath = EventAftermath<E>()
      let result = body(&state)
      advance(&state, at: now, &aftermath)
      return (result, aftermath)
    }
    carryOut(aftermath)
    return result
  }

  fileprivate func carryOut(_ aftermath: consuming EventAftermath<E>) {
    let isEmpty = aftermath.isEmpty
    aftermath.carryOut()
    if isEmpty, let scope { core?.forget(self, scope: scope) }
  }
}

/// A handler that has been added, and what remains to be done about it without a lock.
struct AddedEventHandler<E: Event>: Sendable {
  let handler: EventHandler<E>
  fileprivate let channel: EventChannel<E>
  fileprivate let isolation: (any Actor)?
  /// Whether its lane has to be started.
  fileprivate let isFirst: Bool
  fileprivate let isCrowded: Bool
  fileprivate let replaced: [EventHandler<E>]
  fileprivate let remains: [EventChannel<E>.Remains]
  fileprivate let aftermath: EventAftermath<E>

  /// Starts the handler, and does what the addition has to be followed by.
  func start() {
    for handler in replaced { handler.disarm() }
    for remains in remains { remains.carryOut() }
    if isFirst { handler.lane.start(isolation: isolation) }
    channel.carryOut(aftermath)
    if isCrowded { channel.prune() }
  }
}
