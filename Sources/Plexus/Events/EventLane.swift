/// The handlers of one channel that are called one after the other: the synchronous ones of one actor,
/// or a single one that may suspend.
///
/// One task calls them on their actor, event by event, and for each event handler by handler in
/// subscription order. In between it is parked.
final class EventLane<E: Event>: Sendable {
  /// An event on its way to handlers.
  struct Turn: Sendable {
    /// Who wants to know how it ends.
    enum Report: Sendable {
      case nobody
      case ticket(PostTicket)
      case offer(Int, EventChannel<E>)
    }

    let event: E
    let handlers: ContiguousArray<EventHandler<E>>
    let report: Report
  }

  /// What the removal of a handler has to be followed by, with no lock held.
  struct Remains: Sendable {
    /// Whether the lane has no handlers any more, and has ended.
    var isLast = false
    fileprivate var turns: ContiguousArray<Turn> = []
    fileprivate var parked: SuspendedTask?
    fileprivate var task: Task<Void, Never>?

    /// Cancels a handler that is running, and ends what waited for it.
    func carryOut() {
      task?.cancel()
      parked?.resume()
      for case .ticket(let ticket) in turns.map(\.report) {
        ticket.endPart(notified: 0, handled: 0)
      }
    }
  }

  private struct State {
    /// In subscription order.
    var handlers: ContiguousArray<EventHandler<E>> = []
    var turns = Ring<Turn>()
    var parked: SuspendedTask?
    /// The task, if it is to be cancelled with its handler.
    var task: Task<Void, Never>?
    /// Whether the task ends once there are no more turns.
    var isClosed = false

    mutating func takeParked() -> SuspendedTask? {
      defer { parked = nil }
      return parked
    }
  }

  /// The place in subscription order of the first handler.
  let id: Int
  /// The actor, if the lane is for synchronous handlers.
  let key: Key?
  private let channel: UInt64
  private let state = Locked(State())

  /// What synchronous handlers share a lane by.
  struct Key: Hashable, Sendable {
    let isolation: ObjectIdentifier?
  }

  init(id: Int, key: Key?, channel: UInt64) {
    self.id = id
    self.key = key
    self.channel = channel
  }

  /// Starts the task that calls the handlers; called once, with no lock held.
  func start(isolation: (any Actor)?) {
    let task = Task.detached(priority: Task.currentPriority) {
      await self.run(isolation: isolation)
    }
    guard key == nil else { return }
    let isRemoved = state.withLock { state in
      guard !state.handlers.isEmpty else { return true }
      state.task = task
      return false
    }
    if isRemoved { task.cancel() }
  }

  /// Adds a handler behind the others.
  func add(_ handler: EventHandler<E>) {
    state.withLock { $0.handlers.append(handler) }
  }

  /// Queues an event for the handlers.
  ///
  /// - Parameters:
  ///   - event: The event.
  ///   - last: The last subscriber that gets it.
  ///   - ticket: Who waits for the end.
  /// - Returns: The task to be resumed with no lock held.
  func enqueue(_ event: E, upTo last: Int, ticket: PostTicket?) -> SuspendedTask? {
    state.withLock { state in
      guard let newest = state.handlers.last else { return nil }
      let isForAll = newest.id <= last
      let handlers = isForAll ? state.handlers : state.handlers.filter { $0.id <= last }
      guard !handlers.isEmpty else { return nil }
      ticket?.expectPart()
      state.turns.append(
        Turn(event: event, handlers: handlers, report: ticket.map { .ticket($0) } ?? .nobody)
      )
      return state.takeParked()
    }
  }

  /// Queues an event for one handler.
  ///
  /// - Returns: The task to be resumed with no lock held.
  func enqueue(
    _ event: E,
    for handler: EventHandler<E>,
    offer: Int,
    of channel: EventChannel<E>
  ) -> SuspendedTask? {
    state.withLock { state in
      state.turns.append(
        Turn(event: event, handlers: [handler], report: .offer(offer, channel))
      )
      return state.takeParked()
    }
  }

  /// Removes a handler; with the last one the lane ends.
  func remove(_ handler: EventHandler<E>) -> Remains {
    state.withLock { state in
      var remains = Remains()
      let index = state.handlers.firstSortedIndex { $0.id >= handler.id }
      guard index < state.handlers.count, state.handlers[index] === handler else { return remains }
      state.handlers.remove(at: index)
      guard state.handlers.isEmpty else { return remains }
      state.isClosed = true
      remains.isLast = true
      remains.turns = state.turns.popFirst(atMost: state.turns.count)
      remains.parked = state.takeParked()
      remains.task = state.task
      state.task = nil
      return remains
    }
  }

  /// Lets the task end after the events that are queued; called with no lock held.
  func finish() {
    let parked = state.withLock { state in
      state.isClosed = true
      return state.takeParked()
    }
    parked?.resume()
  }

  // MARK: - The task

  private func run(isolation: isolated (any Actor)?) async {
    while let turns = await nextTurns(isolation: isolation) {
      for turn in turns { await perform(turn, isolation: isolation) }
    }
    let (handlers, task) = state.withLock { state in
      defer { (state.handlers, state.task) = ([], nil) }
      return (state.handlers, state.task)
    }
    withExtendedLifetime(task) {}
    for handler in handlers { handler.disarm() }
  }

  private func nextTurns(isolation: isolated (any Actor)?) async -> ContiguousArray<Turn>? {
    while true {
      // A handler that may suspend may be removed meanwhile, and what it has not begun with it.
      let (turns, isClosed) = state.withLock { state in
        (state.turns.popFirst(atMost: key == nil ? 1 : 64), state.isClosed)
      }
      if !turns.isEmpty { return turns }
      if isClosed { return nil }
      await SuspendedTask.suspend(isolation: isolation) { task in
        let isParked = state.withLock { state in
          guard state.turns.isEmpty, !state.isClosed else { return false }
          state.parked = task
          return true
        }
        if !isParked { task.resume() }
      }
    }
  }

  private func perform(_ turn: Turn, isolation: isolated (any Actor)?) async {
    switch turn.report {
    case .nobody:
      for handler in turn.handlers { _ = await call(handler, turn.event, isolation: isolation) }
    case .ticket(let ticket):
      var (notified, handled) = (0, 0)
      for handler in turn.handlers {
        let ending = await call(handler, turn.event, isolation: isolation)
        if ending != .unreached { notified += 1 }
        if ending == .succeeded { handled += 1 }
      }
      ticket.endPart(notified: notified, handled: handled)
    case .offer(let offer, let channel):
      guard let handler = turn.handlers.first, channel.start(offer) else { return }
      let ending = await call(handler, turn.event, isolation: isolation)
      channel.finish(offer, as: ending)
    }
  }

  private func call(
    _ handler: EventHandler<E>,
    _ event: E,
    isolation: isolated (any Actor)?
  ) async -> EventChannelState<E, EventMember<E>>.Ending {
    guard key == nil else { return await handler.call(event, isolation: isolation) }
    // What the handler starts knows whose end it must not wait for.
    let run = HandlerRun(channel: channel)
    defer { run.end() }
    return await HandlerRun.$current.withValue(run) {
      await handler.call(event, isolation: isolation)
    }
  }
}
