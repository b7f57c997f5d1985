/// The events of one type in one scope: who is subscribed, what is kept, and what is under way.
///
/// Every change is made under one lock, in which events are also put into the buffers of streams and
/// the queues of handlers: that makes one order for all. What the change has to be followed by is done
/// after it.
final class EventChannel<E: Event>: AnyEventChannel {
  struct State: Sendable {
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
  let time: TimeSource
  let state = Locked(State())

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
  func advance(
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
    let remains = change { state in
      state.isFinished = true
      var remains: [(stream: EventStream<E>, member: EventMember<E>?)] = []
      for case .stream(let stream) in state.outlets {
        remains.append((stream, state.schedule.remove(stream.id)))
      }
      state.outlets.removeAll { if case .stream = $0 { true } else { false } }
      state.schedule.removePending()
      return remains
    }
    for (stream, _) in remains { stream.hub.finish() }
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
  func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
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

  func carryOut(_ aftermath: consuming EventAftermath<E>) {
    let isEmpty = aftermath.isEmpty
    aftermath.carryOut()
    if isEmpty, let scope { core?.forget(self, scope: scope) }
  }
}
