extension EventChannel {
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
  ///   - now: The time, which the caller has looked up with no lock held.
  ///   - replaced: Handlers that are removed in the same moment.
  /// - Returns: The handler, to be started with no lock held, and what is left of the others; `nil` if
  ///   the bus has forgotten the channel.
  func add(
    _ recipe: EventHandlerRecipe<E>,
    at now: Nanoseconds,
    replacing replaced: [EventHandler<E>] = []
  ) -> AddedEventHandler<E>? {
    state.withLock { state in
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
    fileprivate let lane: EventLane<E>.Remains
    private let outlet: EventOutlet<E>?
    private let member: EventMember<E>?

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
    let index = state.outlets.firstSortedIndex { $0.id >= id }
    guard index < state.outlets.count, state.outlets[index].id == id else { return nil }
    return state.outlets.remove(at: index)
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
