/// The timer that writes changes without a call of `flush`.
final class WriteBehind: Sendable {
  private let state: Locked<State>
  private let clock: any ErasedClock

  init(delay: Duration, clock: any Clock<Duration>) {
    state = Locked(State(delay: Nanoseconds(saturating: delay)))
    self.clock = clock.erased()
  }

  /// Records that all changes so far are about to be written.
  func beginFlush() {
    state.withLock { $0.beginFlush() }
  }

  /// Records a change.
  ///
  /// - Parameter makeFlush: Returns the closure that writes all changes and returns whether it succeeded.
  func noteChange(
    _ makeFlush: () -> @concurrent @Sendable () async -> Bool
  ) {
    let now = clock.nanoseconds()
    guard state.withLock({ $0.noteChange(at: now) }) else { return }
    let flush = makeFlush()
    Task.detached { [self] in
      while true {
        let now = clock.nanoseconds()
        switch state.withLock({ $0.wake(at: now) }) {
        case .ends:
          return
        case .sleeps(let deadline):
          // If the sleep has failed, the changes are written at once.
          if await clock.hasSlept(until: .nanoseconds(deadline)) { continue }
        case .flushes:
          break
        }
        guard await !flush() else { continue }
        let failure = clock.nanoseconds()
        state.withLock { $0.noteFailure(at: failure) }
      }
    }
  }
}
