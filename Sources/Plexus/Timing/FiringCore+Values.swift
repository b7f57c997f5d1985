extension FiringCore where Schedule == Debouncer.ScheduleState, Value: Equatable {
  /// Sets the value unless it equals the current one.
  ///
  /// - Parameter newValue: The value.
  func set(_ newValue: Value) {
    var isDone = false
    while !isDone {
      var value: Value?
      var lastFired: Value?
      var revision = 0
      state.withLock { state in
        value = state.value
        lastFired = state.lastFired
        revision = state.revision
      }
      // Equality is user code, so it is called outside the lock.
      guard value != newValue else { return }
      let isBack = lastFired == newValue
      if !isBack, replace(with: newValue, revision: revision) { return }
      isDone = true
      change { state, change in
        isDone = state.revision == revision
        if isDone { state.set(newValue, isBack: isBack, &change) }
      }
    }
  }

  /// Sets the value if nothing but the deadline changes.
  private func replace(with newValue: Value, revision: Int) -> Bool {
    let now = clock.now()
    var displaced: Value?
    defer { withExtendedLifetime(displaced) {} }
    return state.withLock {
      $0.replace(&displaced, with: newValue, at: now, revision: revision)
    }
  }
}

extension FiringCore.State where Schedule == Debouncer.ScheduleState {
  /// Sets a new value.
  ///
  /// - Parameters:
  ///   - newValue: The value, which differs from the current one.
  ///   - isBack: Whether it equals the last fired value.
  ///   - change: Receives the effects.
  fileprivate mutating func set(_ newValue: Value, isBack: Bool, _ change: inout Change) {
    // A due firing happens first; the new value then differs from the last fired one.
    guard isBack, !schedule.isDue(at: change.now) else { return accept(newValue, &change) }
    setValue(newValue)
    schedule.withdraw(at: change.now)
  }
}

extension FiringCore where Value == Void {
  convenience init(
    _ schedule: Schedule,
    clock: any Clock<Duration>,
    action: (@concurrent @Sendable () async -> Void)?
  ) {
    var body: Action?
    if let action { body = { @concurrent _ in await action() } }
    self.init(schedule, value: (), clock: clock, action: body)
  }
}
