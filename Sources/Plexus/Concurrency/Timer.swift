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

extension Clock<Duration> {
  /// Calls a closure after some time, unless the returned task is cancelled.
  ///
  /// - Parameters:
  ///   - duration: The time.
  ///   - firesAlways: Whether the closure is also called, early, if the sleep ends with an error.
  ///   - fire: The closure.
  /// - Returns: The task that waits.
  func timer(
    _ duration: Duration,
    firesAlways: Bool = false,
    _ fire: @escaping @Sendable () -> Void
  ) -> Task<Void, Never> {
    let deadline = deadline(after: duration)
    return Task.detached {
      do {
        try await sleep(until: deadline, tolerance: nil)
        fire()
      } catch {
        // The work was faster, or was cancelled.
        if firesAlways { fire() }
      }
    }
  }
}
