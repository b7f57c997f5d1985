/// The implementation of a ``DataPublisher``, which loads in flight use without keeping the publisher alive.
@usableFromInline
final class DataPublisherCore<Value: Sendable>: Sendable {
  @usableFromInline
  struct State: Sendable {
    @usableFromInline var published = DataPublisherState<Value>()
    /// The load that belongs to the current load of the state.
    @usableFromInline var load: PublisherLoad?
    /// The timer that fires when the loaded value becomes stale.
    var timer: Timer?
    /// Whether the publisher was released, so that no staleness is published.
    var isClosed = false

    @usableFromInline
    init() {}
  }

  /// The effects of a change, performed in this order without a lock.
  @usableFromInline
  struct Effects: ~Copyable, Sendable {
    @usableFromInline var delivery: Delivery<LoadState<Value>>?
    @usableFromInline var departure: PublisherLoad.Departure?
    var cancelledTask: Task<Void, Never>?
    var startedTimer: Timer?
    /// The replaced state, to be released.
    @usableFromInline var former: DataPublisherState<Value>?
    @usableFromInline var formerLoad: PublisherLoad?

    @inlinable
    init() {}
  }

  @usableFromInline let hub = BroadcastHub<LoadState<Value>>(isResettable: true)
  @usableFromInline let state = Locked(State())
  @usableFromInline let staleAfter: Duration?
  @usableFromInline let publishesStaleness: Bool
  private let clock: any ErasedClock

  @usableFromInline
  init(staleAfter: Duration?, publishesStaleness: Bool, clock: any Clock<Duration>) {
    self.staleAfter = staleAfter
    self.publishesStaleness = publishesStaleness && staleAfter != nil
    self.clock = clock.erased()
  }

  @inlinable var current: LoadState<Value> {
    state.withLock { $0.published.current }
  }

  /// The time, if values can become stale; the user's clock is read with no lock held.
  @inlinable var now: Duration {
    staleAfter == nil ? .zero : time()
  }

  @usableFromInline
  @inline(never)
  func time() -> Duration {
    clock.now()
  }

  @inlinable var isStale: Bool {
    guard let staleAfter else { return false }
    let now = time()
    return state.withLock { $0.published.isStale(after: staleAfter, at: now) }
  }

  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<LoadState<Value>>, _ replay: [LoadState<Value>]) -> Result
  ) -> Result {
    state.withLock { body(hub, [$0.published.current]) }
  }

  /// Changes the state and publishes it.
  @inlinable
  func change(_ body: (inout DataPublisherState<Value>, _ now: Duration) -> Void) {
    guard !publishesStaleness else { return changeWithAlarm(body) }
    let now = now
    var former: DataPublisherState<Value>?
    var formerLoad: PublisherLoad?
    let delivery = state.withLock { state in
      former = state.published
      body(&state.published, now)
      if state.published.load == nil { formerLoad = state.load.take() }
      return hub.prepare(state.published.current)
    }
    delivery?.deliver()
    withExtendedLifetime(former) {}
    withExtendedLifetime(formerLoad) {}
  }

  /// Changes the state, publishes it, and updates the timer for staleness.
  @usableFromInline
  @inline(never)
  func changeWithAlarm(_ body: (inout DataPublisherState<Value>, _ now: Duration) -> Void) {
    let now = now
    var effects = Effects()
    state.withLock { state in
      effects.former = state.published
      body(&state.published, now)
      if state.published.load == nil { effects.formerLoad = state.load.take() }
      effects.delivery = hub.prepare(state.published.current)
      adjustTimer(of: &state, &effects, now)
    }
    perform(effects)
  }

  /// Drops the value, and replaces unread states by `.unknown`.
  @inlinable
  func reset() {
    let now = now
    var effects = Effects()
    state.withLock { state in
      effects.former = state.published
      state.published.reset()
      effects.formerLoad = state.load.take()
      effects.delivery = hub.prepareReset(state.published.current)
      if publishesStaleness { adjustTimer(of: &state, &effects, now) }
    }
    perform(effects)
  }

  /// Ends every stream when the publisher is released.
  @usableFromInline
  func close() {
    hub.finish()
    let timer = state.withLock { state in
      state.isClosed = true
      return state.timer.take()
    }
    timer?.task?.cancel()
  }

  /// Performs the effects of a change after the lock is released.
  @inlinable
  func perform(_ effects: consuming Effects) {
    effects.delivery.take()?.deliver()
    effects.departure?.perform()
    if publishesStaleness { performAlarms(effects) }
    withExtendedLifetime(effects) {}
  }
}

// MARK: - Loading

extension DataPublisherCore {
  /// Joins the current load or starts one, and waits for it.
  ///
  /// - Parameters:
  ///   - unlessLoaded: Whether to return a loaded value that is not stale.
  ///   - operation: Loads the value.
  /// - Returns: The value.
  /// - Throws: The error of the operation; a `CancellationError` if the caller is cancelled;
  ///   ``LoadError/recursiveLoad`` if it would wait for itself.
  @inlinable
  func load(
    unlessLoaded: Bool,
    _ operation: @escaping @concurrent @Sendable () async throws -> Value
  ) async throws -> Value {
    try Task.checkCancellation()
    switch admit(unlessLoaded: unlessLoaded) {
    case .ready(let value):
      return value
    case .waits(let load, let place, let isNew):
      let outcome = try await load.outcome(in: place) {
        guard isNew else { return }
        load.run { priority in
          Task.detached(priority: priority) { [self] in
            finish(load, with: await load.result(of: operation))
          }
        }
      } leave: {
        self.leave(load, place)
      }
      return outcome.value(of: Value.self)
    }
  }

  /// The way in which a caller gets its value.
  @usableFromInline
  enum Admission: Sendable {
    case ready(Value)
    case waits(PublisherLoad, WaitPlace, isNew: Bool)
  }

  @inlinable
  func admit(unlessLoaded: Bool) -> Admission {
    let now = now
    var effects = Effects()
    let admission = state.withLock { state -> Admission in
      if unlessLoaded, case .loaded(let value) = state.published.current,
        !state.published.isStale(after: staleAfter, at: now)
      {
        return .ready(value)
      }
      if let load = state.load { return .waits(load, load.join(), isNew: false) }
      // The load keeps the state that it replaces.
      let load = PublisherLoad(id: state.published.beginLoad())
      state.load = load
      effects.delivery = hub.prepare(state.published.current)
      if publishesStaleness { adjustTimer(of: &state, &effects, now) }
      return .waits(load, .first, isNew: true)
    }
    perform(effects)
    return admission
  }

  /// Removes a caller; the last one cancels the load.
  ///
  /// - Returns: Whether the caller was still waiting.
  @usableFromInline
  func leave(_ load: PublisherLoad, _ place: WaitPlace) -> Bool {
    let now = now
    var effects = Effects()
    let hasLeft = state.withLock { state in
      let departure = load.depart(place)
      effects.departure = departure
      effects.former = state.published
      if departure.isLast, state.published.abandonLoad(load.id) {
        effects.formerLoad = state.load.take()
        effects.delivery = hub.prepare(state.published.current)
      }
      if publishesStaleness { adjustTimer(of: &state, &effects, now) }
      return departure.hasLeft
    }
    perform(effects)
    return hasLeft
  }

  @inlinable
  func finish(_ load: PublisherLoad, with result: Result<Value, any Error>) {
    load.noteOutcome()
    let now = now
    var effects = Effects()
    state.withLock { state in
      effects.former = state.published
      if state.published.finishLoad(load.id, with: result, at: now) {
        effects.formerLoad = state.load.take()
        effects.delivery = hub.prepare(state.published.current)
      }
      if publishesStaleness { adjustTimer(of: &state, &effects, now) }
    }
    perform(effects)
    load.finish(result)
  }
}

// MARK: - Publishing staleness

extension DataPublisherCore {
  /// Ensures that a timer fires when the loaded value becomes stale, or earlier.
  @usableFromInline
  func adjustTimer(of state: inout State, _ effects: inout Effects, _ now: Duration) {
    guard !state.isClosed else { return }
    let time = state.published.timeUntilStale(after: staleAfter, at: now)
    let wake = time.map { now + $0.limited }
    if let timer = state.timer {
      // A timer that fires early sleeps again, so that frequent updates start no tasks.
      if let wake, timer.wake <= wake { return }
      // The value is stale, and the timer is about to publish that.
      if state.published.isStale(after: staleAfter, at: now) { return }
      effects.cancelledTask = timer.task
      state.timer = nil
    }
    guard let wake else { return }
    let timer = Timer(wake: wake)
    state.timer = timer
    effects.startedTimer = timer
  }

  /// Cancels and starts the timers of a change.
  @usableFromInline
  func performAlarms(_ effects: borrowing Effects) {
    effects.cancelledTask?.cancel()
    if let timer = effects.startedTimer { start(timer) }
  }

  private func start(_ timer: Timer) {
    timer.start(on: clock) { [weak self] hasSlept in
      self?.wake(timer.id, hasSlept: hasSlept)
    } note: { note in
      state.withLock { note(&$0.timer) }
    }
  }

  /// Handles the firing of a timer.
  ///
  /// - Parameters:
  ///   - timer: The id of the timer.
  ///   - hasSlept: Whether the clock has let it sleep. If not, it stops until the next change.
  /// - Returns: The time of its next firing, if any.
  private func wake(_ timer: UInt64, hasSlept: Bool) -> Duration? {
    let now = clock.now()
    let (next, delivery, garbage) = state.withLock { state in
      guard state.timer?.id == timer else {
        return (Duration?.none, Delivery<LoadState<Value>>?.none, Timer?.none)
      }
      let garbage = state.timer
      if hasSlept, let time = state.published.timeUntilStale(after: staleAfter, at: now) {
        let next = now + time.limited
        state.timer?.wake = next
        return (next, nil, garbage)
      }
      state.timer = nil
      let isStale = state.published.isStale(after: staleAfter, at: now)
      return (nil, isStale ? hub.prepare(state.published.current) : nil, garbage)
    }
    delivery?.deliver()
    withExtendedLifetime(garbage) {}
    return next
  }
}
