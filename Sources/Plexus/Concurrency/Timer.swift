/// A task that sleeps until a deadline.
struct Timer: Sendable {
  let id = UniqueID.next()
  /// The time at which it wakes, which is not after the deadline.
  var wake: Duration
  /// The task, once it has been created.
  var task: Task<Void, Never>?

  init(wake: Duration) {
    self.wake = wake
  }

  /// Starts the task.
  ///
  /// - Parameters:
  ///   - clock: The clock to sleep on.
  ///   - ring: Called when the task wakes, with `false` if `sleep` threw. It returns the next time to wake, if any.
  ///     It should not retain the object that it wakes, because some clocks ignore cancellation.
  ///   - note: Calls its argument with the timer that is in place, under the lock that guards it. The task is noted
  ///     there, or cancelled if another timer has taken the place meanwhile.
  func start(
    on clock: any ErasedClock,
    _ ring: @escaping @Sendable (_ hasSlept: Bool) -> Duration?,
    note: ((inout Timer?) -> Bool) -> Bool
  ) {
    let task = start(on: clock, ring)
    let isNoted = note { timer in
      guard timer?.id == id else { return false }
      timer?.task = task
      return true
    }
    if !isNoted { task.cancel() }
  }

  private func start(
    on clock: any ErasedClock,
    _ ring: @escaping @Sendable (_ hasSlept: Bool) -> Duration?
  ) -> Task<Void, Never> {
    Task.detached(priority: Task.currentPriority) { [wake] in
      var next: Duration? = wake
      while let wake = next {
        var hasSlept = true
        do {
          try await clock.sleep(until: wake)
        } catch {
          hasSlept = false
        }
        next = ring(hasSlept)
      }
    }
  }
}
