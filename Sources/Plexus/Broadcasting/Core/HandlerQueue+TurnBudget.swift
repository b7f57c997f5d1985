extension HandlerQueue {
  /// The time that a loop of handlers occupies its actor before it yields: about a millisecond.
  ///
  /// Reading the clock costs as much as a fast handler. It is therefore read after the second call and then after
  /// 1, 2, 4, 8 and finally every 16 calls, as long as they are fast.
  struct TurnBudget: Sendable {
    private static let limit: Nanoseconds = 1_000_000
    /// The longest time that counts between two readings: a thread that the system preempted in between has not kept
    /// its actor busy.
    private static let most = limit / 2

    private var elapsed: Nanoseconds = 0
    private var last: Nanoseconds?
    /// The number of calls before the clock is read.
    private var remaining = 2
    private var interval = 1

    /// Counts a call.
    ///
    /// - Parameter now: A closure that reads the clock.
    /// - Returns: Whether it is time to yield the actor.
    mutating func isSpent(_ now: () -> Nanoseconds = monotonicNanoseconds) -> Bool {
      remaining &-= 1
      return remaining <= 0 && look(at: now())
    }

    private mutating func look(at now: Nanoseconds) -> Bool {
      let duration = now - (last ?? now)
      elapsed += min(duration, Self.most)
      // After a slow call the clock is read at every call.
      if last != nil { interval = duration < Self.limit / 16 ? min(2 * interval, 16) : 1 }
      last = now
      remaining = interval
      return elapsed >= Self.limit
    }

    /// Leaves the current actor, so that tasks that wait for it run before the caller resumes.
    @concurrent
    @inline(never)
    static func leaveActor() async {
      // The compiler would remove a hop to an empty body.
      _ = monotonicNanoseconds()
    }
  }
}
