/// The shared implementation of debouncers and throttlers, which their tasks use without retaining them.
///
/// A touch changes the schedule under a lock. While a firing is pending, one task sleeps until it is due; touches
/// move the deadline and leave the task alone, which sleeps again if it wakes too early. While there are
/// runs of the action, one task carries them out one after the other.
final class FiringCore<Schedule: FiringSchedule, Value: Sendable>: Sendable {
  typealias Action = @concurrent @Sendable (Value) async -> Void

  /// The task that runs the action.
  struct Runner: Sendable {
    /// The id of its first run.
    let id: UInt64
    /// The task, once it has been created.
    var task: Task<Void, Never>?
  }

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
    var timer: Timer?
    var actions = ActionRun.Queue<Value, ActionRun>()
    var action: Action?
    var runner: Runner?
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
        state.latest = change.now
        body(&state, &change)
        state.adjustTimer(&change)
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
  func flush() async {
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
    for run in change.endedRuns { run.ticket.finish() }
    for task in change.cancelledTasks { task.cancel() }
    if let timer = change.startedTimer { start(timer) }
    if let runner = change.startedRunner { start(runner) }
  }

  private func start(_ timer: Timer) {
    timer.start(on: clock) { [weak self] hasSlept in
      self?.wake(timer.id, hasFailed: !hasSlept)
    } note: { note in
      state.withLock { note(&$0.timer) }
    }
  }

  /// Handles the wake-up of a timer.
  ///
  /// - Parameters:
  ///   - timer: The id of the timer.
  ///   - hasFailed: Whether the clock's `sleep` threw; the pending firing then counts as due.
  /// - Returns: The next deadline to sleep until, if any.
  private func wake(_ timer: UInt64, hasFailed: Bool) -> Duration? {
    var deadline: Duration?
    change { state, change in
      guard state.timer?.id == timer else { return }
      let isDue =
        hasFailed
        ? state.schedule.expire(at: change.now) : state.schedule.elapse(at: change.now)
      if isDue { state.fire(&change) }
      deadline = state.schedule.deadline
      // The timer's task continues or ends by itself, so no timer has to be started or cancelled.
      if let deadline { state.timer?.wake = deadline } else { state.timer = nil }
    }
    return deadline
  }

  private func start(_ runner: Runner) {
    let task = Task.detached(priority: Task.currentPriority) { await self.runActions(runner.id) }
    let isCurrent = state.withLock { state in
      guard state.runner?.id == runner.id else { return false }
      state.runner?.task = task
      return true
    }
    if !isCurrent { task.cancel() }
  }

  private func runActions(_ first: UInt64) async {
    var id: UInt64? = first
    while let run = id, let (action, value, ticket) = begin(run) {
      await WaitScope.local.withValue(ticket) { await action(value) }
      id = end(run)
    }
  }

  private func begin(_ run: UInt64) -> (Action, Value, ActionRun)? {
    var former: Value?
    defer { withExtendedLifetime(former) {} }
    return state.withLock { state in
      guard let action = state.action, let run = state.actions.begin(run) else { return nil }
      if keepsValue {
        former = state.lastCalled
        state.lastCalled = run.value
      }
      return (action, run.value, run.ticket)
    }
  }

  /// Ends a run of the action.
  ///
  /// - Parameter run: The id of the run.
  /// - Returns: The id of the next run, if any.
  private func end(_ run: UInt64) -> UInt64? {
    let (ended, next, garbage) = state.withLock { state in
      let ended = state.actions.end(run)
      let next = state.actions.current?.id
      let garbage = next == nil ? state.runner : nil
      if next == nil { state.runner = nil }
      return (ended, next, garbage)
    }
    ended?.ticket.finish()
    withExtendedLifetime(garbage) {}
    return next
  }
}
