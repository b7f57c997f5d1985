/// The shared implementation of debouncers and throttlers, which their tasks use without retaining them.
///
/// A touch changes the schedule under a lock. While a firing is pending, one task sleeps until it is due; touches
/// move the deadline and leave the task alone, which sleeps again if it wakes too early. While there are
/// runs of the action, one task carries them out one after the other.
final class FiringCore<Schedule: FiringSchedule, Value: Sendable>: Sendable {
  typealias Action = @concurrent @Sendable (Value) async -> Void

  struct State: Sendable {
    var schedule: Schedule
    /// The latest time read from the clock.
    var latest = Duration.zero
    /// The value to fire.
    var value: Value?
    /// The last fired value.
    var lastFired: Value?
    /// The last value with which the action was called; the initial value before.
    var lastCalled: Value?
    /// Whether the last firing has reached no subscriber.
    var isUnseen = false
    /// The number of changes of the value and of the last fired one.
    var revision = 0
    /// The timer for the pending firing.
    var timer = MovableTimer()
    var actions = ActionRun.QueueState<Value, ActionRun>()
    var action: Action?
    /// The task that runs the action, while there are runs.
    var runner: TaskSlot?
    var isReleased = false
  }

  let hub = BroadcastHub<Value>()
  let clock: any ErasedClock
  /// Whether the value is kept after it has been fired.
  private let keepsValue: Bool
  let state: Locked<State>

  init(
    _ schedule: Schedule,
    value: Value?,
    clock: any Clock<Duration>,
    action: Action?
  ) {
    self.clock = clock.erased()
    keepsValue = value != nil
    state = Locked(
      State(
        schedule: schedule,
        value: value,
        lastFired: value,
        lastCalled: value,
        action: action
      )
    )
  }

  /// Reads the state; the result is released without the lock.
  func read<Result>(_ body: (State) -> Result) -> Result {
    state.withLock { body($0) }
  }

  /// Handles a touch; the fast path only moves the deadline.
  func touch() {
    let now = clock.now()
    let isAll = state.withLock { state in
      guard now >= state.latest, state.schedule.postpone(at: now) else { return false }
      state.latest = now
      return true
    }
    if !isAll { change { state, change in state.touch(&change) } }
  }

  /// Sets a value and handles a touch.
  func accept(_ newValue: Value) {
    let now = clock.now()
    var displaced: Value?
    let isAll = state.withLock { $0.replace(&displaced, with: newValue, at: now, revision: nil) }
    if !isAll { change { state, change in state.accept(newValue, &change) } }
    withExtendedLifetime(displaced) {}
  }

  /// Changes the state and carries out the effects outside the lock.
  ///
  /// - Parameter body: A closure that changes the state. It is not called after the release.
  func change(_ body: (inout State, inout Change) -> Void) {
    var floor: Duration?
    while true {
      // The clock is user code, so it is read outside the lock.
      var change = Change(now: clock.now(), hub: hub, keepsValue: keepsValue)
      let latest = state.withLock { state -> Duration? in
        guard !state.isReleased else { return nil }
        if change.now < state.latest {
          // Another thread may have read the clock later and got here first. A reading that is earlier
          // than a time known before the reading means that the clock has been set back.
          guard let floor, change.now < floor else { return state.latest }
          state.schedule.restart(at: change.now)
        }
        change.former = state
        state.latest = change.now
        body(&state, &change)
        change.timer = state.timer.set(state.schedule.deadline)
        return nil
      }
      guard let latest else { return perform(change) }
      floor = latest
    }
  }

  /// Fires if a firing is pending, and waits for the end of the last run of the action.
  ///
  /// Returns without waiting inside the action, and inside a fetch that the action waits for, where a wait would be
  /// a deadlock.
  ///
  /// - Parameter owner: The owner of the core, whose release would cancel the awaited run.
  func flush(retaining owner: some AnyObject) async {
    defer { withExtendedLifetime(owner) {} }
    var awaited: ActionRun?
    change { state, change in
      if state.schedule.expire(at: change.now) { state.fire(&change) }
      awaited = state.actions.last?.ticket
    }
    await awaited?.wait()
  }

  /// Drops the pending firing and the runs of the action that have not begun, which then count as not fired.
  func cancel() {
    change { state, change in
      state.schedule.cancel()
      state.cancelActions(&change)
    }
  }

  /// Ends everything; later calls have no effect.
  ///
  /// - Parameter fires: Whether a pending firing happens first.
  func release(firing fires: Bool = false) {
    change { state, change in
      if fires, state.schedule.expire(at: change.now) { state.fire(&change) }
      state.release(&change)
    }
    hub.finish()
  }

  private func perform(_ change: Change) {
    for delivery in change.deliveries { delivery.deliver() }
    for run in change.cancelledRuns { run.finish() }
    change.cancelledRunner?.cancel()
    change.timer?.perform(on: clock) { [weak self] sleeper, hasSlept in
      self?.wake(sleeper, hasSlept: hasSlept)
    }
    guard let (run, runner) = change.started else { return }
    runner.start {
      Task.detached(priority: Task.currentPriority) { await self.runActions(run) }
    }
  }

  /// Handles the waking of a sleeper.
  ///
  /// - Parameters:
  ///   - sleeper: The sleeper.
  ///   - hasSlept: Whether the clock has let it sleep. If not, the pending firing counts as due.
  /// - Returns: The next deadline to sleep until, if any.
  private func wake(_ sleeper: MovableTimer.Sleeper, hasSlept: Bool) -> Duration? {
    var deadline: Duration?
    change { state, change in
      guard state.timer.isCurrent(sleeper) else { return }
      let isDue =
        hasSlept ? state.schedule.elapse(at: change.now) : state.schedule.expire(at: change.now)
      if isDue { state.fire(&change) }
      deadline = state.timer.sleep(until: state.schedule.deadline)
    }
    return deadline
  }

  private func runActions(_ first: UInt64) async {
    var id: UInt64? = first
    while let run = id, let (action, value, ticket) = begin(run) {
      await WaitScope.local.withValue(ticket) { await action(value) }
      id = end(run)
    }
  }

  private func begin(_ run: UInt64) -> (Action, Value, ActionRun)? {
    let (begun, _) = state.withLock { state -> ((Action, Value, ActionRun)?, Value?) in
      let former = state.lastCalled
      guard let action = state.action, let run = state.actions.begin(run) else {
        return (nil, former)
      }
      if keepsValue { state.lastCalled = run.value }
      return ((action, run.value, run.ticket), former)
    }
    return begun
  }

  /// Ends a run of the action.
  ///
  /// - Parameter run: The id of the run.
  /// - Returns: The id of the next run, if any.
  private func end(_ run: UInt64) -> UInt64? {
    let (ended, next) = state.withLock { state in
      let ended = state.actions.end(run)
      let next = state.actions.current?.id
      if next == nil { state.runner = nil }
      return (ended, next)
    }
    ended?.ticket.finish()
    return next
  }
}
