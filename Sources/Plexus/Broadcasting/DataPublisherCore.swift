/// What a ``DataPublisher`` consists of, apart from its life: loads that are under way use it without
/// keeping the publisher.
final class DataPublisherCore<Value: Sendable>: Sendable {
  /// The states of loads that the loads themselves know nothing of.
  private struct State {
    var published = DataPublisherState<Value>()
    /// The load that belongs to the current one of the state.
    var load: PublisherLoad<Value>?
    /// What wakes when the loaded value goes stale.
    var alarm: Alarm?
    /// Whether the publisher has gone: there is nobody to be told what goes stale.
    var isClosed = false
  }

  /// What a change leaves to be done without a lock, in this order.
  private struct Effects {
    var delivery: Delivery<LoadState<Value>>?
    var departure: PublisherLoad<Value>.Departure?
    var cancelledTasks: [Task<Void, Never>] = []
    var startedAlarm: Alarm?
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

  /// The time, if something can go stale; the clock is a user's, and read with no lock held.
  private var now: Duration {
    staleAfter == nil ? .zero : clock.now()
  }

  var isStale: Bool {
    let now = now
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
    let alarm = state.withLock { state in
      state.isClosed = true
      return state.alarm.take()
    }
    alarm?.task?.cancel()
  }

  /// Changes the state, and does what follows from that once the lock is given back.
  private func perform<Result>(
    _ body: (inout State, inout Effects, _ now: Duration) -> Result
  ) -> Result {
    let now = now
    let (result, effects, garbage) = state.withLock { state in
      let garbage = state
      var effects = Effects()
      let result = body(&state, &effects, now)
      if publishesStaleness, !state.isClosed { adjustAlarm(of: &state, &effects, now) }
      return (result, effects, garbage)
    }
    effects.delivery?.deliver()
    effects.departure?.perform()
    for task in effects.cancelledTasks { task.cancel() }
    if let alarm = effects.startedAlarm { start(alarm) }
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
    load.settle()
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
  private func adjustAlarm(of state: inout State, _ effects: inout Effects, _ now: Duration) {
    let time = state.published.timeUntilStale(after: staleAfter, at: now)
    let wake = time.map { now + $0.limited }
    if let alarm = state.alarm {
      // One that wakes too early sleeps again: updates in quick succession start no task.
      if let wake, alarm.wake <= wake { return }
      // The value has gone stale, and the alarm is about to say so.
      if state.published.isStale(after: staleAfter, at: now) { return }
      if let task = alarm.task { effects.cancelledTasks.append(task) }
      state.alarm = nil
    }
    guard let wake else { return }
    let alarm = Alarm(wake: wake)
    state.alarm = alarm
    effects.startedAlarm = alarm
  }

  private func start(_ alarm: Alarm) {
    let task = alarm.start(on: clock) { [weak self] hasSlept in
      self?.wake(alarm.id, hasSlept: hasSlept)
    }
    let isCurrent = state.withLock { state in
      guard state.alarm?.id == alarm.id else { return false }
      state.alarm?.task = task
      return true
    }
    if !isCurrent { task.cancel() }
  }

  /// The alarm goes off.
  ///
  /// - Parameters:
  ///   - alarm: Which one.
  ///   - hasSlept: Whether the clock let it sleep. If not, it gives up until the next change.
  /// - Returns: When it has to go off again, if it has to.
  private func wake(_ alarm: UInt64, hasSlept: Bool) -> Duration? {
    let now = clock.now()
    let (next, delivery, garbage) = state.withLock { state in
      guard state.alarm?.id == alarm else {
        return (Duration?.none, Delivery<LoadState<Value>>?.none, Alarm?.none)
      }
      let garbage = state.alarm
      if hasSlept, let time = state.published.timeUntilStale(after: staleAfter, at: now) {
        let next = now + time.limited
        state.alarm?.wake = next
        return (next, nil, garbage)
      }
      state.alarm = nil
      let isStale = state.published.isStale(after: staleAfter, at: now)
      return (nil, isStale ? hub.prepare(state.published.current) : nil, garbage)
    }
    delivery?.deliver()
    withExtendedLifetime(garbage) {}
    return next
  }
}
