/// A task that sleeps until it is time for something.
struct Timer: Sendable {
  let id = UniqueID.next()
  /// When it wakes, which is never after the time has come.
  var wake: Duration
  /// The task, as soon as it is known.
  var task: Task<Void, Never>?

  init(wake: Duration) {
    self.wake = wake
  }

  /// Starts the task.
  ///
  /// - Parameters:
  ///   - clock: What it sleeps on.
  ///   - ring: Called when it has woken, with whether the clock has let it sleep. It should not keep what
  ///     it wakes: a clock need not care whether a sleeping task is cancelled. It returns when to wake
  ///     again, if need be.
  /// - Returns: The task.
  func start(
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
