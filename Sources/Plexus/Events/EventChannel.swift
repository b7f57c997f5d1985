internal import Synchronization

/// The events of one type and scope: the subscribers, the retained events and the deliveries.
///
/// One lock protects all changes and also covers enqueueing events into the buffers of streams and the queues of
/// handlers, which establishes a single order. The effects of a change are carried out after the lock is
/// released. Events are boxed, so that the channel is not generic.
///
/// The subscribers retain the channel, and it releases them when they are removed or the bus is released.
@usableFromInline
final class EventChannel: Handler.Source {
  struct State: Sendable {
    var schedule = Schedule<AnyBox, EventChannel.Member>()
    /// The outlets, in order of the first subscriber of each.
    var outlets: ContiguousArray<EventChannel.Outlet> = []
    /// The queues of synchronous handlers, by actor.
    var queues = IdentityTable<HandlerQueue>()
    /// The completions that callers wait for, by the number of the post.
    var completions: [Int: PostCompletion] = [:]
    /// The sequence number of the next event that is sent to all subscribers.
    var sequence = 0
    /// The thread that began to handle the latest offer.
    var offerThread = ThreadID()
    /// The calls of the handler with the latest offer.
    var offered: HandlerQueue.Calls?
    /// The offer to a handler that has removed itself, and the timer that limits its answer.
    var answer: (offer: Int, timer: Task<Void, Never>)?
    /// Whether a task carries out the remaining steps.
    var isBehind = false
    /// The number of subscribers above which handlers with a released owner are searched for.
    var crowd = 64
    /// Whether the bus has been released.
    var isFinished = false
    /// Whether the bus has dropped the channel; callers that still hold it must look up another one.
    var isRetired = false

    /// Takes out the completion of a post, if a caller waits for it.
    mutating func takeCompletion(_ post: Int) -> PostCompletion? {
      completions.isEmpty ? nil : completions.removeValue(forKey: post)
    }
  }

  let id = UniqueID.next()
  /// The event type.
  let type: ObjectIdentifier
  let scope: EventScope?
  private weak let core: EventBus.Core?
  private let clock: any Clock<Duration>
  let time: TimeSource
  /// The priority that all handlers have at least; set under the lock, together with the outlets.
  let raisedPriority = Atomic<UInt8>(0)
  let state = Locked(State())

  init(type: ObjectIdentifier, scope: EventScope?, core: EventBus.Core) {
    self.type = type
    self.scope = scope
    self.core = core
    clock = core.clock
    time = core.time
  }

  // MARK: - Posting

  /// The result of a post.
  @usableFromInline
  enum Posting: Sendable {
    /// The bus has dropped the channel in the meantime.
    case isRetired
    case isDone(isKept: Bool)
  }

  /// Posts an event that is not retained and not waited for, if the channel is idle.
  ///
  /// - Parameter box: The event.
  /// - Returns: Whether it was posted.
  @usableFromInline
  func post(_ box: AnyBox) -> Bool {
    var effects = EventChannel.Effects()
    let isPosted = state.withLock { state in
      guard !state.isRetired, state.schedule.isIdle else { return false }
      fanOut(box, &state, &effects)
      return true
    }
    if isPosted { effects.perform() }
    return isPosted
  }

  /// Posts an event.
  ///
  /// - Parameters:
  ///   - box: The event.
  ///   - persistence: The persistence of the event.
  ///   - completion: The completion that the caller waits for, if it does.
  /// - Returns: Whether the event is now retained.
  func post(_ box: AnyBox, _ persistence: EventPersistence, completion: PostCompletion?) -> Posting
  {
    let now = persistence.rule == nil ? 0 : time.now()
    var effects = EventChannel.Effects()
    let posting = state.withLock { state -> Posting in
      guard !state.isRetired else { return .isRetired }
      guard persistence.rule != nil || !state.schedule.isIdle else {
        fanOut(box, upTo: .max, completion, &state, &effects)
        return .isDone(isKept: false)
      }
      let post = state.schedule.post(box, persistence, isAwaited: completion != nil, at: now)
      if let completion {
        state.completions[post] = completion
        completion.number = post
      }
      advance(&state, at: now, &effects)
      return .isDone(isKept: state.schedule.isKept(post: post, at: now))
    }
    perform(effects)
    return posting
  }

  /// Carries out the possible steps, up to a number of deliveries; a task carries out the rest.
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
          state.schedule.finish(
            offer.number,
            as: isAccepted ? .succeeded : .failed,
            isRevocable: true
          )
        case .handler(let handler):
          let item = HandlerQueue.Item(
            box: offer.element,
            sequence: state.sequence,
            report: EventChannel.Offer(number: offer.number, to: handler, channel: self)
          )
          state.offered = handler.queue.calls
          let task = handler.queue.enqueue(offer: item, &effects.handlers)
          effects.wake(task, id: handler.queue.id)
        }
      case .fanOut(let box, let post, let last):
        fanOut(box, upTo: last, state.takeCompletion(post), &state, &effects)
      case .end(let post, let outcome):
        if let completion = state.takeCompletion(post) {
          effects.more().ended.append((completion, outcome))
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

  /// Sends an event, for which no caller waits, to every subscriber.
  private func fanOut(_ box: AnyBox, _ state: inout State, _ effects: inout EventChannel.Effects) {
    let sequence = state.sequence
    state.sequence &+= 1
    for index in state.outlets.indices {
      switch state.outlets[index] {
      case .stream(let stream):
        _ = stream.put(box, &effects)
      case .queue(let queue):
        let task = queue.enqueue(box, sequence: sequence, &effects.handlers)
        effects.wake(task, id: queue.id)
      }
    }
  }

  /// Sends an event to every subscriber up to the given one.
  private func fanOut(
    _ box: AnyBox,
    upTo last: Int,
    _ completion: PostCompletion?,
    _ state: inout State,
    _ effects: inout EventChannel.Effects
  ) {
    var (notified, handled) = (0, 0)
    let sequence = state.sequence
    state.sequence &+= 1
    completion?.fanOut(sequence)
    for index in state.outlets.indices {
      switch state.outlets[index] {
      case .stream(let stream) where stream.id <= last:
        notified += 1
        if stream.put(box, &effects) { handled += 1 }
      case .queue(let queue) where queue.id <= last:
        completion?.addPart()
        let task = queue.enqueue(
          box,
          sequence: sequence,
          last: last,
          report: completion,
          &effects.handlers
        )
        effects.wake(task, id: queue.id)
      case .stream, .queue:
        break
      }
    }
    if let completion, notified > 0 || completion.withdrawPart() {
      let outcome = PostOutcome(notified: notified, handled: handled)
      effects.more().parts.append((completion, outcome))
    }
  }

  /// Marks an offer as being handled.
  ///
  /// - Returns: Whether the offer is still valid.
  func start(_ offer: Int) -> Bool {
    let thread = ThreadID.current
    return state.withLock { state in
      state.offerThread = thread
      return state.schedule.start(offer)
    }
  }

  /// Ends an offer; called with no lock held.
  func finish(_ offer: Int, as ending: Handler.Ending) {
    let timer = change { state -> Task<Void, Never>? in
      state.schedule.finish(offer, as: ending)
      guard state.answer?.offer == offer else { return nil }
      return state.answer.take()?.timer
    }
    timer?.cancel()
  }

  /// The time for which the result of a handler that has removed itself is awaited.
  private static let answerTime = Duration.seconds(1)

  /// Ends an offer as failed unless the handler, which has removed itself, returns soon.
  ///
  /// No other code can remove it again. Called with no lock held.
  func limitAnswer(to offer: Int) {
    let timer = clock.timer(Self.answerTime, firesAlways: true) { [weak self] in
      self?.finish(offer, as: .failed)
    }
    let isOpen = state.withLock { state in
      guard state.schedule.isOpen(offer) else { return false }
      state.answer = (offer, timer)
      return true
    }
    if !isOpen { timer.cancel() }
  }

  /// Ends the wait of a cancelled caller; called with no lock held.
  func abandon(_ completion: PostCompletion) {
    let now = time.now()
    let outcome = state.withLock { state -> PostOutcome? in
      let post = completion.number
      guard state.completions[post] === completion else { return nil }
      state.completions[post] = nil
      return state.schedule.progress(of: post, at: now)
    }
    completion.abandon(outcome)
  }

  /// Returns the running calls of handlers that an event must wait for.
  ///
  /// - Parameter sequence: The sequence number of the event if it has been sent to all subscribers; calls for
  ///   later events are excluded.
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

  /// Raises the priority of the handlers to that of a waiting caller.
  func raise(to priority: TaskPriority) {
    guard priority.rawValue > raisedPriority.load(ordering: .relaxed) else { return }
    let outlets = state.withLock { state in
      if priority.rawValue > raisedPriority.load(ordering: .relaxed) {
        raisedPriority.store(priority.rawValue, ordering: .relaxed)
      }
      return state.outlets
    }
    for case .queue(let queue) in outlets { queue.raise(to: priority) }
  }

  // MARK: - Kept events

  /// The retained events in posting order.
  @usableFromInline var pendingEvents: [AnyBox] {
    let now = time.now()
    return change { $0.schedule.pending(at: now) }
  }

  /// Discards the retained events.
  @usableFromInline
  func removePendingEvents() {
    change { $0.schedule.removePending() }
  }

  // MARK: - Changes

  /// Changes the state, carries out the steps that this makes possible, and performs the effects.
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

  /// Performs the effects of a change, with no lock held.
  func perform(_ effects: EventChannel.Effects) {
    effects.perform()
    if effects.finishes { end() }
    if effects.isEmpty, let scope { core?.forget(self, scope: scope) }
    if effects.isBehind { catchUp() }
  }

  /// Carries out the remaining steps in a task, so that no caller is blocked.
  private func catchUp() {
    Task.detached(priority: Task.currentPriority) { [self] in
      while takeTurn() { await Task.yield() }
    }
  }

  /// Carries out steps up to a number of deliveries.
  ///
  /// - Returns: Whether steps remain.
  private func takeTurn(deliveries limit: Int = 512) -> Bool {
    let now = time.now()
    var effects = EventChannel.Effects()
    let isBehind = state.withLock { state in
      // `finish()` may have carried out the remaining steps.
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

  /// Ends the streams when the bus has been released; handlers still process the events posted before.
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
    for (stream, _) in remains { stream.hub.end() }
  }

  /// Closes the queues, and releases the subscribers, which retain the channel.
  private func end() {
    let (members, outlets) = state.withLock { state in
      (state.schedule.removeMembers(), state.outlets)
    }
    for case .queue(let queue) in outlets { queue.close() }
    withExtendedLifetime(members) {}
  }

  /// Marks the channel as dropped if it is empty; called under the lock of the bus.
  ///
  /// - Returns: Whether the bus can drop it.
  func retire() -> Bool {
    state.withLock { state in
      guard state.schedule.isEmpty else { return false }
      state.isRetired = true
      return true
    }
  }
}
