/// What a ``DataPublisher`` consists of, apart from its life: loads that are under way use it without
/// keeping the publisher.
@usableFromInline
final class DataPublisherCore<Value: Sendable>: Sendable {
  @usableFromInline
  struct State: Sendable {
    @usableFromInline var published = DataPublisherState<Value>()
    /// The load that belongs to the current one of the state.
    @usableFromInline var load: PublisherLoad?
    /// What wakes when the loaded value goes stale.
    var timer: Timer?
    /// Whether the publisher has gone: there is nobody to be told what goes stale.
    var isClosed = false

    @usableFromInline
    init() {}
  }

  /// What a change leaves to be done without a lock, in this order.
  @usableFromInline
  struct Effects: Sendable {
    @usableFromInline var delivery: Delivery<LoadState<Value>>?
    @usableFromInline var departure: PublisherLoad.Departure?
    var cancelledTask: Task<Void, Never>?
    var startedTimer: Timer?
    /// What was replaced, to be released.
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

  /// The time, if something can go stale; the clock is a user's, and read with no lock held.
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
    delivery.deliver()
    withExtendedLifetime(former) {}
    withExtendedLifetime(formerLoad) {}
  }

  /// Changes the state and publishes it, and sees to the task that wakes when the value goes stale.
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

  /// Forgets everything, and publishes that in place of what subscribers have not read.
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

  /// Ends every stream: the publisher has gone.
  @usableFromInline
  func close() {
    hub.finish()
    let timer = state.withLock { state in
      state.isClosed = true
      return state.timer.take()
    }
    timer?.task?.cancel()
  }

  /// Does what follows from a change, once the lock is given back.
  @inlinable
  func perform(_ effects: consuming Effects) {
    effects.delivery?.deliver()
    effects.departure?.perform()
    if publishesStaleness { performAlarms(effects) }
    withExtendedLifetime(effects) {}
  }
}

// MARK: - Loading

extension DataPublisherCore {
  /// Joins the current load or begins one, and waits for it.
  ///
  /// - Parameters:
  ///   - unlessLoaded: Whether a value that is loaded and not stale will do.
  ///   - operation: What loads the value.
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
        if isNew { load.start(operation) { self.finish(load, with: $0) } }
      } leave: {
        self.leave(load, place)
      }
      return outcome.value(of: Value.self)
    }
  }

  /// How a caller gets its value.
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
      effects.former = state.published
      let load = PublisherLoad(id: state.published.beginLoad())
      state.load = load
      effects.delivery = hub.prepare(state.published.current)
      if publishesStaleness { adjustTimer(of: &state, &effects, now) }
      return .waits(load, load.join(), isNew: true)
    }
    perform(effects)
    return admission
  }

  /// A caller leaves; the last one takes the load with it.
  ///
  /// - Returns: Whether it was there until now.
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
    load.settle()
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

// MARK: - Telling that a value goes stale

extension DataPublisherCore {
  /// Sees to it that a task wakes when the loaded value goes stale, or before.
  @usableFromInline
  func adjustTimer(of state: inout State, _ effects: inout Effects, _ now: Duration) {
    guard !state.isClosed else { return }
    let time = state.published.timeUntilStale(after: staleAfter, at: now)
    let wake = time.map { now + $0.limited }
    if let timer = state.timer {
      // One that wakes too early sleeps again: updates in quick succession start no task.
      if let wake, timer.wake <= wake { return }
      // The value has gone stale, and the timer is about to say so.
      if state.published.isStale(after: staleAfter, at: now) { return }
      effects.cancelledTask = timer.task
      state.timer = nil
    }
    guard let wake else { return }
    let timer = Timer(wake: wake)
    state.timer = timer
    effects.startedTimer = timer
  }

  /// Cancels and starts the tasks that a change has left.
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

  /// The timer goes off.
  ///
  /// - Parameters:
  ///   - timer: Which one.
  ///   - hasSlept: Whether the clock let it sleep. If not, it gives up until the next change.
  /// - Returns: When it has to go off again, if it has to.
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
