extension FiringCore where Schedule == DebounceState, Value: Equatable {
  /// Sets the value, unless it is equal to the one that is there.
  ///
  /// - Parameter newValue: The value.
  func set(_ newValue: Value) {
    var isDone = false
    while !isDone {
      let (value, lastFired, revision) = read { ($0.value, $0.lastFired, $0.revision) }
      // Equality is a user's: it is asked for before the lock is taken.
      guard value != newValue else { return }
      let isBack = lastFired == newValue
      isDone = true
      change { state, change in
        isDone = state.revision == revision
        if isDone { state.set(newValue, isBack: isBack, &change) }
      }
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
