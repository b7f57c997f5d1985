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
        next = ring(await clock.hasSlept(until: wake))
      }
    }
  }
}

extension ErasedClock {
  /// Sleeps until a deadline, also if the clock wakes the task earlier.
  ///
  /// A clock whose `sleep` returns at once, without having moved, is a programmer error: the program stops in debug
  /// builds. In release builds, the rest is slept on the system's clock, so that no CPU time is spent.
  ///
  /// - Parameters:
  ///   - deadline: The deadline.
  ///   - stop: Called if the clock stands still.
  /// - Returns: Whether the clock has reached the deadline; `false` if `sleep` threw, the task was cancelled, or the
  ///   clock stands still.
  package func hasSlept(
    until deadline: Duration,
    onStandstill stop: @Sendable () -> Void = stopBecauseOfStandstill
  ) async -> Bool {
    var wakes = EarlyWakes()
    while true {
      do {
        try await sleep(until: deadline)
      } catch {
        return false
      }
      let now = self.now()
      guard now < deadline else { return true }
      guard !Task.isCancelled else { return false }
      guard wakes.isTooOften(at: now) else {
        await Task.yield()
        continue
      }
      stop()
      try? await ContinuousClock().sleep(for: deadline - now)
      return self.now() >= deadline
    }
  }
}

/// The wake-ups before a deadline during which a clock has not moved.
struct EarlyWakes: Sendable {
  /// The number of them after which the clock counts as standing still.
  static var limit: Int { 100 }

  private var count = 0
  private var latest: Duration?

  init() {}

  /// Notes that a clock has woken a task too early.
  ///
  /// - Parameter now: The time of the clock.
  /// - Returns: Whether the clock stands still.
  mutating func isTooOften(at now: Duration) -> Bool {
    count = now == latest ? count + 1 : 1
    latest = now
    return count >= Self.limit
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
