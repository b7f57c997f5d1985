extension FiringCore {
  /// What a change of the state takes with it, to be carried out and released without the lock.
  struct Change: Sendable {
    /// The time of the change.
    let now: Duration
    let hub: BroadcastHub<Value>
    let keepsValue: Bool

    var deliveries: [Delivery<Value>] = []
    /// The runs that are over, or will not take place.
    var endedRuns: [ActionQueueState<Value, ActionRun>.Run] = []
    var cancelledTasks: [Task<Void, Never>] = []
    var startedTimer: Timer?
    var startedRunner: Runner?
    /// The values that have given way to others.
    var values: [Value] = []
    /// The action that nobody will call any more.
    var action: Action?

    init(now: Duration, hub: BroadcastHub<Value>, keepsValue: Bool) {
      self.now = now
      self.hub = hub
      self.keepsValue = keepsValue
    }

    /// Takes a value along that the state has given up.
    mutating func take(_ value: Value?) {
      if let value { values.append(value) }
    }
  }
}

extension FiringCore.State {
  typealias Change = FiringCore.Change

  /// A touch, after what has been due.
  mutating func touch(_ change: inout Change) {
    if schedule.elapse(at: change.now) { fire(&change) }
    if schedule.touch(at: change.now) { fire(&change) }
  }

  /// A new value, and a touch.
  mutating func accept(_ newValue: Value, _ change: inout Change) {
    if schedule.elapse(at: change.now) { fire(&change) }
    setValue(newValue, &change)
    if schedule.touch(at: change.now) { fire(&change) }
    // It came at a time when nothing is fired.
    if !change.keepsValue, schedule.deadline == nil { setValue(nil, &change) }
  }

  /// A new value and a touch that changes nothing but the deadline, in the usual case between others.
  ///
  /// - Parameters:
  ///   - displaced: Receives the value that has given way.
  ///   - newValue: The value.
  ///   - now: The time.
  ///   - expected: The revision that must not have changed; `nil` if it does not matter.
  /// - Returns: Whether that was all; if not, nothing has changed.
  mutating func replace(
    _ displaced: inout Value?,
    with newValue: Value,
    at now: Duration,
    revision expected: Int?
  ) -> Bool {
    guard now >= latest, expected.map({ $0 == revision }) ?? true else { return false }
    guard schedule.deadline != nil, schedule.postpone(at: now) else { return false }
    latest = now
    displaced = value
    value = newValue
    revision += 1
    return true
  }

  /// Sends the value, and asks for a run of the action.
  mutating func fire(_ change: inout Change) {
    guard let value else { return }
    change.deliveries.append(change.hub.prepare(value))
    if change.keepsValue {
      change.take(lastFired)
      lastFired = value
      revision += 1
    } else {
      setValue(nil, &change)
    }
    guard action != nil else { return }
    let id = UniqueID.next()
    let current = actions.current?.ticket
    let (isCurrent, displaced) = actions.add(value, id: id, ticket: ActionRun(after: current))
    change.take(displaced)
    guard isCurrent else { return }
    let newRunner = FiringCore.Runner(id: id)
    runner = newRunner
    change.startedRunner = newRunner
  }

  /// Sees to it that a task wakes when what is pending is due, or before.
  mutating func adjustTimer(_ change: inout Change) {
    let deadline = schedule.deadline
    if let timer {
      if let deadline, timer.wake <= deadline { return }
      if let task = timer.task { change.cancelledTasks.append(task) }
      self.timer = nil
    }
    guard let deadline else { return }
    let newAlarm = Timer(wake: deadline)
    timer = newAlarm
    change.startedTimer = newAlarm
  }

  /// Drops the runs of the action that have not begun.
  mutating func cancelActions(_ change: inout Change) {
    change.endedRuns += actions.cancel()
    guard actions.current == nil else { return }
    if let task = runner?.task { change.cancelledTasks.append(task) }
    runner = nil
  }

  /// Gives up everything.
  mutating func release(_ change: inout Change) {
    schedule.cancel()
    cancelActions(&change)
    if let task = runner?.task { change.cancelledTasks.append(task) }
    runner = nil
    change.action = action
    action = nil
    setValue(nil, &change)
    change.take(lastFired)
    lastFired = nil
    isReleased = true
  }

  mutating func setValue(_ newValue: Value?, _ change: inout Change) {
    change.take(value)
    value = newValue
    revision += 1
  }
}
