extension FiringCore where Schedule == DebounceState, Value: Equatable {
  /// Sets the value, unless it is equal to the one that is there.
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
      // Equality is a user's: it is asked for before the lock is taken.
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

  /// Sets the value, if that changes nothing but the deadline.
  private func replace(with newValue: Value, revision: Int) -> Bool {
    let now = clock.now()
    var displaced: Value?
    defer { withExtendedLifetime(displaced) {} }
    return state.withLock {
      $0.replace(&displaced, with: newValue, at: now, revision: revision)
    }
  }
}

extension FiringCore.State where Schedule == DebounceState {
  /// A new value.
  ///
  /// - Parameters:
  ///   - newValue: The value, which is another one than before.
  ///   - isBack: Whether it is the one that was fired last.
  ///   - change: What follows from that.
  fileprivate mutating func set(_ newValue: Value, isBack: Bool, _ change: inout Change) {
    // What is due is fired first, and then the new value is another one than that.
    guard isBack, !schedule.isDue(at: change.now) else { return accept(newValue, &change) }
    setValue(newValue, &change)
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
