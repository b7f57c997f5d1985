// @unchecked Sendable: required for subclasses of `HandlerQueue.Report`; an offer is immutable.

internal import Synchronization

/// The events of one type and scope: a hub, with the offers of the retained events in front of it.
///
/// An event goes to the hub directly as long as there is nothing to offer. The lock of the channel protects the offers;
/// it also covers what they send to the hub, so that the hub has the one order. Events are boxed, so that the
/// channel is not generic.
///
/// The handlers retain the channel, which releases them when they are removed or the bus is released.
@usableFromInline
final class EventChannel: Sendable {
  /// A subscriber of a channel.
  enum Member: Sendable {
    /// A stream, by the buffer for the events that are offered to it.
    case stream(HubBase.Buffer)
    case handler(Handler)
  }

  struct State: Sendable {
    /// The subscribers have the same places as in the hub.
    var offers = OffersState<AnyBox, EventChannel.Member>()
    /// The completions for callers that wait and for the log of posts, by the number of the post.
    var completions: [Int: PostCompletion] = [:]
    /// The thread that began to handle the latest offer.
    var offerThread = ThreadID()
    /// The calls of the handler with the latest offer.
    var offered: HandlerQueue.Calls?
    /// The offer to a handler that has removed itself, and the timer that limits its answer.
    var answer: (offer: Int, timer: Task<Void, Never>)?
    /// Whether a task carries out the remaining steps.
    var isBehind = false
    /// The number of subscribers above which handlers with a released owner are searched for.
    var sweepThreshold = 64
    /// Whether the bus has been released.
    var isFinished = false
    /// Whether the bus has dropped the channel; callers that still hold it must look up another one.
    var isRetired = false

    /// Whether something is to be done: most changes without retained events leave nothing.
    var hasSteps: Bool { isFinished || !offers.isIdle || !offers.released.isEmpty }

    /// Takes out the completion of a post, if a caller or the log needs it.
    mutating func takeCompletion(_ post: Int) -> PostCompletion? {
      completions.isEmpty ? nil : completions.removeValue(forKey: post)
    }
  }

  let id = UniqueID.next()
  /// The event type.
  let eventType: any Event.Type
  var type: ObjectIdentifier { ObjectIdentifier(eventType) }
  /// The scope, in a box, since most channels have none, and copying one costs more.
  let scope: Box<EventScope>?
  /// The subscribers, and the events on their way to them.
  @usableFromInline let hub: HubBase
  private weak let core: EventBus.Core?
  private let clock: any Clock<Duration>
  let time: TimeSource
  /// The priority that all handlers have at least; set under the lock, together with new queues.
  let raisedPriority = Atomic<UInt8>(0)
  let state = Locked(State())

  init<E: Event>(of type: E.Type, scope: Box<EventScope>?, core: EventBus.Core) {
    eventType = type
    self.scope = scope
    self.core = core
    hub = BroadcastHub<E>()
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

  /// Posts an event.
  ///
  /// - Parameters:
  ///   - box: The event.
  ///   - persistence: The persistence of the event.
  ///   - completion: The completion, if the caller waits for it or the log of posts has readers.
  ///   - log: The log of posts, if it has readers: it has the order of the channel.
  /// - Returns: Whether the event is now retained.
  func post(
    _ box: AnyBox,
    _ persistence: EventPersistence,
    _ completion: PostCompletion?,
    in log: PostLog?
  ) -> Posting {
    let now = persistence.rule == nil ? 0 : time.now()
    var effects = HubEffects()
    var reach: HubBase.Reach?
    var logged = Delivery<EventPost>()
    let posting = state.withLock { state -> Posting in
      guard !state.isRetired else { return .isRetired }
      guard persistence.rule != nil || !state.offers.isIdle else {
        if let log { completion?.append(to: log, by: self, isRetained: false, &logged) }
        reach = fanOut(box, completion, &effects)
        return .isDone(isKept: false)
      }
      let post = state.offers.post(box, persistence, isAwaited: completion != nil, at: now)
      if let completion {
        state.completions[post] = completion
        completion.number = post
      }
      advance(&state, at: now, &effects)
      let isKept = state.offers.isKept(post: post, at: now)
      if let log { completion?.append(to: log, by: self, isRetained: isKept, &logged) }
      return .isDone(isKept: isKept)
    }
    logged.deliver()
    effects.perform()
    if let reach { completion?.end(notified: reach.notified, handled: reach.handled) }
    return posting
  }

  /// The number of deliveries after which a task carries out the remaining steps, so that no caller is blocked.
  private static let turnLength = 512

  /// Carries out the possible steps; a task carries out the rest if there are many.
  func advance(_ state: inout State, at now: Nanoseconds, _ effects: inout HubEffects) {
    guard !state.isBehind, state.hasSteps || scope != nil || hub.isHeld.load(ordering: .relaxed)
    else { return }
    takeSteps(&state, at: now, &effects)
    if state.isBehind {
      effects.then { TurnBudget.continueInTask { [self] in takeTurn() } }
    }
  }

  /// Carries out the possible steps, up to a number of deliveries.
  private func takeSteps(
    _ state: inout State,
    at now: Nanoseconds,
    deliveries limit: Int = turnLength,
    _ effects: inout HubEffects
  ) {
    // Set before the hub gets the first event that has waited: a post can go there at any time.
    if !state.offers.isIdle { hub.isHeld.store(true, ordering: .relaxed) }
    var deliveries = 0
    while deliveries < limit, let step = state.offers.next(at: now) {
      deliveries += 1
      switch step {
      case .offer(let offer):
        self.offer(offer, &state, &effects)
      case .fanOut(let box, let post):
        let completion = state.takeCompletion(post)
        if let reach = fanOut(box, of: post, completion, &effects) {
          effects.then { completion?.end(notified: reach.notified, handled: reach.handled) }
        } else {
          // If it has been handled already, this can be the last reference to a record and its event.
          effects.release(completion)
        }
        deliveries += state.offers.memberCount
      case .end(let post, let outcome):
        if let completion = state.takeCompletion(post) {
          effects.then { completion.finish(with: outcome) }
        }
      }
    }
    state.isBehind = deliveries >= limit
    if !state.isBehind { hub.isHeld.store(!state.offers.isIdle, ordering: .relaxed) }
    let released = state.offers.takeReleased()
    effects.release(elements: released)
    if state.isFinished, state.offers.isIdle { effects.then { [self] in end() } }
    if let scope, state.offers.isEmpty {
      effects.then { [self] in core?.forget(self, scope: scope.element) }
    }
  }

  /// Delivers a retained event to one subscriber.
  private func offer(
    _ offer: OffersState<AnyBox, Member>.Offer,
    _ state: inout State,
    _ effects: inout HubEffects
  ) {
    switch offer.member {
    case .stream(let buffer):
      let (isAccepted, sequence) = hub.send(offer.element, to: buffer, &effects)
      let ending: Handler.Ending = isAccepted ? .succeeded : .failed
      state.offers.finish(offer.number, as: ending, revocableAt: sequence)
    case .handler(let handler) where handler.queue.direct != nil:
      // It has no number of its own.
      let item = HandlerQueue.Item(box: offer.element, sequence: handler.queue.end - 1)
      handler.queue.enqueue(item, &effects)
      state.offers.finish(offer.number, as: .succeeded)
    case .handler(let handler):
      state.offered = handler.queue.calls
      let report = Offer(number: offer.number, to: handler, channel: self)
      let item = HandlerQueue.Item(
        box: offer.element,
        sequence: handler.queue.end,
        report: report
      )
      handler.queue.enqueue(item, &effects)
    }
  }

  /// Sends an event to every subscriber.
  ///
  /// - Parameters:
  ///   - box: The event.
  ///   - post: The number of the post if it has waited, which subscribers that have been added meanwhile ignore; or 0.
  ///   - completion: The completion, if a caller or the log needs it.
  ///   - effects: Receives the work that remains.
  /// - Returns: The share of the streams, to be reported to the completion with no lock held, if there is one.
  private func fanOut(
    _ box: AnyBox,
    of post: Int = 0,
    _ completion: PostCompletion?,
    _ effects: inout HubEffects
  ) -> HubBase.Reach? {
    let item = HandlerQueue.Item(box: box, sender: UInt64(post), report: completion)
    let reach = hub.send(item, &effects)
    guard let completion, reach.notified > 0 || completion.withdrawPart() else { return nil }
    return reach
  }

  /// Marks an offer as being handled.
  ///
  /// - Returns: Whether the offer is still valid.
  func start(_ offer: Int) -> Bool {
    let thread = ThreadID.current
    return state.withLock { state in
      state.offerThread = thread
      return state.offers.start(offer)
    }
  }

  /// Ends an offer; called with no lock held.
  func finish(_ offer: Int, as ending: Handler.Ending) {
    let timer = change { state, _ -> Task<Void, Never>? in
      state.offers.finish(offer, as: ending)
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
      guard state.offers.isOpen(offer) else { return false }
      state.answer = (offer, timer)
      return true
    }
    if !isOpen { timer.cancel() }
  }

  /// Ends the wait of a cancelled caller; called with no lock held.
  func abandon(_ completion: PostCompletion) {
    let now = time.now()
    let (isOver, outcome) = state.withLock { state -> (Bool, PostOutcome?) in
      let post = completion.number
      guard state.completions[post] === completion else {
        // Without having been sent to all subscribers, it has ended, and another thread is about to say so.
        return (post > 0 && completion.sequence == .max, nil)
      }
      state.completions[post] = nil
      return (false, state.offers.progress(of: post, at: now))
    }
    if !isOver { completion.abandon(outcome) }
  }

  /// Returns the running calls of handlers that an event must wait for.
  ///
  /// - Parameter sequence: The sequence number of the event if it has been sent to all subscribers; calls for
  ///   later events are excluded.
  /// - Returns: The calls.
  func runs(upTo sequence: Int) -> [HandlerRun] {
    let (queues, offered) = state.withLock { (hub.queues, $0.offered) }
    // The handler with the latest offer may have been removed.
    return (queues.map(\.calls) + CollectionOfOne(offered)).compactMap {
      $0?.run(upTo: sequence)
    }
  }

  /// Raises the priority of the handlers to that of a waiting caller.
  func raise(to priority: TaskPriority) {
    guard priority.rawValue > raisedPriority.load(ordering: .relaxed) else { return }
    let queues = state.withLock { _ in
      if priority.rawValue > raisedPriority.load(ordering: .relaxed) {
        raisedPriority.store(priority.rawValue, ordering: .relaxed)
      }
      return hub.queues
    }
    for queue in queues { queue.raise(to: priority) }
  }

  // MARK: - Retained events

  /// The retained events in posting order.
  @usableFromInline var pendingEvents: [AnyBox] {
    let now = time.now()
    return change { state, _ in state.offers.pending(at: now) }
  }

  /// Discards the retained events.
  @usableFromInline
  func removePendingEvents() {
    change { state, _ in state.offers.removePending() }
  }

  // MARK: - Changes

  /// Changes the state, carries out the steps that this makes possible, and performs the effects.
  @discardableResult
  func change<Result: Sendable>(_ body: (inout State, inout HubEffects) -> Result) -> Result {
    let now = time.now()
    var effects = HubEffects()
    let result = state.withLock { state in
      let result = body(&state, &effects)
      advance(&state, at: now, &effects)
      return result
    }
    effects.perform()
    return result
  }

  /// Carries out steps up to a number of deliveries.
  ///
  /// - Returns: Whether steps remain.
  private func takeTurn(deliveries limit: Int = turnLength) -> Bool {
    let now = time.now()
    var effects = HubEffects()
    let isBehind = state.withLock { state in
      // `finish()` may have carried out the remaining steps.
      guard state.isBehind else { return false }
      takeSteps(&state, at: now, deliveries: limit, &effects)
      return state.isBehind
    }
    effects.perform()
    return isBehind
  }

  // MARK: - Ending

  /// Ends the streams when the bus has been released; handlers still process the events posted before.
  func finish() {
    _ = takeTurn(deliveries: .max)
    change { state, effects in
      state.isFinished = true
      effects.release(
        value: state.offers.remove { member in
          if case .stream = member { true } else { false }
        }
      )
      state.offers.removePending()
    }
    hub.endReaders()
  }

  /// Ends the handlers, and releases the subscribers, which retain the channel.
  private func end() {
    hub.endHandlers()
    state.release { $0.offers.removeMembers() }
  }

  /// Marks the channel as dropped if it is empty; called under the lock of the bus.
  ///
  /// - Returns: Whether the bus can drop it.
  func retire() -> Bool {
    state.withLock { state in
      guard state.offers.isEmpty else { return false }
      state.isRetired = true
      hub.isHeld.store(true, ordering: .relaxed)
      return true
    }
  }
}

extension EventChannel {
  /// A retained event that was offered to a handler and whose result is awaited.
  final class Offer: HandlerQueue.Report, @unchecked Sendable {
    private let number: Int
    private let channel: EventChannel

    init(number: Int, to receiver: Handler, channel: EventChannel) {
      self.number = number
      self.channel = channel
      super.init(receiver: receiver)
    }

    override var isOffer: Bool { true }

    override func begin() -> Bool {
      channel.start(number)
    }

    override func end(notified: Int, handled: Int) {
      channel.finish(number, as: notified == 0 ? .unreached : handled > 0 ? .succeeded : .failed)
    }
  }
}
