/// What a ``DataPublisher`` consists of, apart from its life: loads that are under way use it without
/// keeping the publisher.
final class DataPublisherCore<Value: Sendable>: Sendable {
  /// The task that sleeps until the loaded value goes stale.
  private struct Timer {
    let id: UInt64
    /// When it wakes, which is never after the value goes stale.
    var wake: Duration
    /// The task, as soon as it is known.
    var task: Task<Void, Never>?
  }

  /// The states of loads that the loads themselves know nothing of.
  private struct State {
    var published = DataPublisherState<Value>()
    /// The load that belongs to the current one of the state.
    var load: PublisherLoad<Value>?
    var timer: Timer?
  }

  /// What a change leaves to be done without a lock, in this order.
  private struct Effects {
    var delivery: Delivery<LoadState<Value>>?
    var departure: PublisherLoad<Value>.Departure?
    var cancelledTasks: [Task<Void, Never>] = []
    var startedTimer: Timer?
  }

  let hub = BroadcastHub<LoadState<Value>>()
  private let state = Locked(State())
  private let staleAfter: Duration?
  private let publishesStaleness: Bool
  private let clock: any AlarmClock

  init(staleAfter: Duration?, publishesStaleness: Bool, clock: any Clock<Duration>) {
    self.staleAfter = staleAfter
    self.publishesStaleness = publishesStaleness && staleAfter != nil
    self.clock = clock.alarmClock()
  }

  var current: LoadState<Value> {
    state.withLock { $0.published.current }
  }

  var isStale: Bool {
    let now = clock.now()
    return state.withLock { $0.published.isStale(after: staleAfter, at: now) }
  }

  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<LoadState<Value>>, _ replay: [LoadState<Value>]) -> Result
  ) -> Result {
    state.withLock { body(hub, [$0.published.current]) }
  }

  /// Changes the state and publishes it.
  func change(_ body: (inout DataPublisherState<Value>, _ now: Duration) -> Void) {
    perform { state, effects, now in
      body(&state.published, now)
      if state.published.currentLoad == nil { state.load = nil }
      effects.delivery = hub.prepare(state.published.current)
    }
  }

  /// Ends every stream: the publisher has gone.
  func close() {
    hub.finish()
    let timer = state.withLock { $0.timer.take() }
    timer?.task?.cancel()
  }

  /// Changes the state, and does what follows from that once the lock is given back.
  private func perform<Result>(
    _ body: (inout State, inout Effects, _ now: Duration) -> Result
  ) -> Result {
    // The clock is a user's: it is read before the lock is taken.
    let now = clock.now()
    let (result, effects, garbage) = state.withLock { state in
      let garbage = state
      var effects = Effects()
      let result = body(&state, &effects, now)
      if publishesStaleness { adjustTimer(of: &state, &effects, now) }
      return (result, effects, garbage)
    }
    effects.delivery?.deliver()
    effects.departure?.carryOut()
    for task in effects.cancelledTasks { task.cancel() }
    if let timer = effects.startedTimer { start(timer) }
    withExtendedLifetime(garbage) {}
    return result
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
  func load(
    unlessLoaded: Bool,
    _ operation: @escaping @concurrent @Sendable () async throws -> Value
  ) async throws -> Value {
    try Task.checkCancellation()
    switch admit(unlessLoaded: unlessLoaded) {
    case .ready(let value):
      return value
    case .waits(let load, let place, let isNew):
      return try await load.value(in: place) {
        if isNew { load.start(operation) { self.finish(load, with: $0) } }
      } leave: {
        self.leave(load, place)
      }
    }
  }

  /// How a caller gets its value.
  private enum Admission {
    case ready(Value)
    case waits(PublisherLoad<Value>, WaitPlace, isNew: Bool)
  }

  private func admit(unlessLoaded: Bool) -> Admission {
    perform { state, effects, now in
      if unlessLoaded, case .loaded(let value) = state.published.current,
        !state.published.isStale(after: staleAfter, at: now)
      {
        return .ready(value)
      }
      if let load = state.load { return .waits(load, load.join(), isNew: false) }
      let load = PublisherLoad<Value>(id: state.published.beginLoad())
      state.load = load
      effects.delivery = hub.prepare(state.published.current)
      return .waits(load, load.join(), isNew: true)
    }
  }

  /// A caller leaves; the last one takes the load with it.
  ///
  /// - Returns: Whether it was there until now.
  private func leave(_ load: PublisherLoad<Value>, _ place: WaitPlace) -> Bool {
    perform { state, effects, _ in
      let departure = load.leave(place)
      effects.departure = departure
      if departure.isLast, state.published.abandonLoad(load.id) {
        state.load = nil
        effects.delivery = hub.prepare(state.published.current)
      }
      return departure.hasLeft
    }
  }

  private func finish(_ load: PublisherLoad<Value>, with result: Result<Value, any Error>) {
    perform { state, effects, now in
      guard state.published.finishLoad(load.id, with: result, at: now) else { return }
      state.load = nil
      effects.delivery = hub.prepare(state.published.current)
    }
    load.finish(result)
  }
}

// MARK: - Telling that a value goes stale

extension DataPublisherCore {
  /// Sees to it that a task wakes when the loaded value goes stale, or before.
  private func adjustTimer(of state: inout State, _ effects: inout Effects, _ now: Duration) {
    let time = state.published.timeUntilStale(after: staleAfter, at: now)
    // More than 126 years are as good as for ever, and more than every clock can be relied on to bear.
    let wake = time.map { now + min($0, .seconds(4_000_000_000)) }
    if let timer = state.timer {
      // One that wakes too early sleeps again: updates in quick succession start no task.
      if let wake, timer.wake <= wake { return }
      // The value has gone stale, and the timer is about to say so.
      if state.published.isStale(after: staleAfter, at: now) { return }
      if let task = timer.task { effects.cancelledTasks.append(task) }
      state.timer = nil
    }
    guard let wake else { return }
    let timer = Timer(id: UniqueID.next(), wake: wake)
    state.timer = timer
    effects.startedTimer = timer
  }

  private func start(_ timer: Timer) {
    let task = Task.detached(priority: Task.currentPriority) { [weak self, clock] in
      var next: Duration? = timer.wake
      while let wake = next {
        let hasSlept: Bool
        do {
          try await clock.sleep(until: wake)
          hasSlept = true
        } catch {
          hasSlept = false
        }
        next = self?.wake(timer.id, hasSlept: hasSlept)
      }
    }
    let isCurrent = state.withLock { state in
      guard state.timer?.id == timer.id else { return false }
      state.timer?.task = task
      return true
    }
    if !isCurrent { task.cancel() }
  }

  /// The timer wakes.
  ///
  /// - Parameters:
  ///   - timer: Which one.
  ///   - hasSlept: Whether the clock let it sleep. If not, it gives up until the next change.
  /// - Returns: When it has to wake again, if it has to.
  private func wake(_ timer: UInt64, hasSlept: Bool) -> Duration? {
    let now = clock.now()
    let (next, delivery, garbage) = state.withLock { state in
      guard state.timer?.id == timer else {
        return (Duration?.none, Delivery<LoadState<Value>>?.none, Timer?.none)
      }
      let garbage = state.timer
      if hasSlept, let time = state.published.timeUntilStale(after: staleAfter, at: now) {
        let next = now + min(time, .seconds(4_000_000_000))
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
