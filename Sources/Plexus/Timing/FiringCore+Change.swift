extension FiringCore {
  /// The effects of a state change, to be carried out and released without the lock.
  struct Change: Sendable {
    /// The time of the change.
    let now: Duration
    let hub: BroadcastHub<Value>
    let keepsValue: Bool

    var deliveries: [Delivery<Value>] = []
    var cancelledRuns: [ActionRun] = []
    var cancelledRunner: TaskSlot?
    var timer: MovableTimer.Move?
    /// The task to be started, and the id of its first run.
    var started: (run: UInt64, runner: TaskSlot)?
    /// The state before the change, which retains all that the change replaces.
    var former: State?

    init(now: Duration, hub: BroadcastHub<Value>, keepsValue: Bool) {
      self.now = now
      self.hub = hub
      self.keepsValue = keepsValue
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
    setValue(newValue)
    if schedule.touch(at: change.now) { fire(&change) }
    // Nothing will fire this value.
    if !change.keepsValue, schedule.deadline == nil { setValue(nil) }
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
    var delivery = Delivery<Value>()
    isUnseen = !change.hub.prepare(value, &delivery)
    if !isUnseen { change.deliveries.append(delivery) }
    if change.keepsValue {
      lastFired = value
      revision += 1
    } else {
      setValue(nil)
    }
    guard action != nil else { return }
    let id = UniqueID.next()
    let current = actions.current?.ticket
    let ticket = ActionRun(after: current)
    guard actions.add(value, id: id, ticket: ticket).isCurrent else { return }
    let new = TaskSlot()
    runner = new
    change.started = (id, new)
  }

  /// Cancels the runs of the action that have not begun.
  mutating func cancelActions(_ change: inout Change) {
    let dropped = actions.cancel()
    change.cancelledRuns += dropped.map(\.ticket)
    if !dropped.isEmpty {
      // The values of these runs count as not fired, and so does a firing that has reached no subscriber either.
      if isUnseen { schedule.withdrawFiring() }
      if change.keepsValue {
        lastFired = lastCalled
        revision += 1
      }
    }
    if actions.current == nil { change.cancelledRunner = runner.take() }
  }

  /// Cancels everything and gives up the action and the values.
  mutating func release(_ change: inout Change) {
    schedule.cancel()
    cancelActions(&change)
    if let runner = runner.take() { change.cancelledRunner = runner }
    action = nil
    setValue(nil)
    (lastFired, lastCalled) = (nil, nil)
    isReleased = true
  }

  mutating func setValue(_ newValue: Value?) {
    value = newValue
    revision += 1
  }
}
