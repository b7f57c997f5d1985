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
