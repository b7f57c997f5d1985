extension FiringCore {
  /// The effects of a state change, to be carried out and released without the lock.
  struct Change: Sendable {
    /// The time of the change.
    let now: Duration
    let hub: BroadcastHub<Value>
    let keepsValue: Bool

    var deliveries: [Delivery<Value>] = []
    /// The runs that have ended or been cancelled.
    var endedRuns: [ActionRun.Queue<Value, ActionRun>.Run] = []
    var cancelledTasks: [Task<Void, Never>] = []
    var startedTimer: Timer?
    var startedRunner: Runner?
    /// The replaced values.
    var values: [Value] = []
    /// The released action.
    var action: Action?

    init(now: Duration, hub: BroadcastHub<Value>, keepsValue: Bool) {
      self.now = now
      self.hub = hub
      self.keepsValue = keepsValue
    }

    /// Adds a value that the state no longer holds.
    mutating func take(_ value: Value?) {
      if let value { values.append(value) }
    }
  }
}

extension FiringCore.State {
  typealias Change = FiringCore.Change

  /// Handles a touch, after firing if a firing is due.
  mutating func touch(_ change: inout Change) {
    if schedule.elapse(at: change.now) { fire(&change) }
    if schedule.touch(at: change.now) { fire(&change) }
  }

  /// Sets a value and handles a touch.
  mutating func accept(_ newValue: Value, _ change: inout Change) {
    if schedule.elapse(at: change.now) { fire(&change) }
    setValue(newValue, &change)
    if schedule.touch(at: change.now) { fire(&change) }
    // Nothing will fire this value.
    if !change.keepsValue, schedule.deadline == nil { setValue(nil, &change) }
  }

  /// Sets a value and postpones the pending firing, if nothing else changes.
  ///
  /// - Parameters:
  ///   - displaced: Receives the replaced value.
  ///   - newValue: The value.
  ///   - now: The current time.
  ///   - expected: The revision that must still be current, or `nil` for any.
  /// - Returns: Whether that was all; if `false`, nothing has changed.
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

  /// Sends the value and requests a run of the action.
  mutating func fire(_ change: inout Change) {
    guard let value else { return }
    let delivery = change.hub.prepare(value)
    if let delivery { change.deliveries.append(delivery) }
    isUnseen = delivery == nil
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

  /// Ensures that a task wakes no later than the pending firing is due.
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

  /// Cancels the runs of the action that have not begun.
  mutating func cancelActions(_ change: inout Change) {
    let dropped = actions.cancel()
    change.endedRuns += dropped
    if !dropped.isEmpty {
      // The values of these runs count as not fired, and so does a firing that has reached no subscriber either.
      if isUnseen { schedule.withdrawFiring() }
      if change.keepsValue {
        change.take(lastFired)
        lastFired = lastCalled
        revision += 1
      }
    }
    guard actions.current == nil else { return }
    if let task = runner?.task { change.cancelledTasks.append(task) }
    runner = nil
  }

  /// Cancels everything and gives up the action and the values.
  mutating func release(_ change: inout Change) {
    schedule.cancel()
    cancelActions(&change)
    if let task = runner?.task { change.cancelledTasks.append(task) }
    runner = nil
    change.action = action
    action = nil
    setValue(nil, &change)
    change.take(lastFired)
    change.take(lastCalled)
    (lastFired, lastCalled) = (nil, nil)
    isReleased = true
  }

  mutating func setValue(_ newValue: Value?, _ change: inout Change) {
    change.take(value)
    value = newValue
    revision += 1
  }
}
