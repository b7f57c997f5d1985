/// The time for which a loop of calls occupies an actor or a caller before it leaves the rest for another turn.
///
/// Reading the clock costs as much as a fast call. It is therefore read after the first or second call and then after
/// 1, 2, 4, 8 and finally every 16 calls, as long as they are fast.
@usableFromInline
struct TurnBudget: Sendable {
  /// About a millisecond.
  @usableFromInline static var usualLimit: Nanoseconds { 1_000_000 }

  private let limit: Nanoseconds
  private var elapsed: Nanoseconds = 0
  private var last: Nanoseconds?
  /// The maximum number of calls, and the number of those before the last reading.
  private let most: Int
  private var count = 0
  /// The number of calls between the last reading and the next one, and how many are still to come.
  private var step: Int
  private var remaining: Int
  private var interval = 1

  /// Creates the budget of a loop of calls on an actor.
  init() {
    self.init(limit: Self.usualLimit, most: .max, firstReading: 2)
  }

  /// Creates a budget.
  ///
  /// - Parameters:
  ///   - limit: The time.
  ///   - most: The maximum number of calls.
  ///   - step: The number of calls before the clock is read for the first time.
  init(limit: Nanoseconds, most: Int, firstReading step: Int = 1) {
    self.limit = limit
    self.most = most
    self.step = step
    remaining = step
  }

  /// Counts a call.
  ///
  /// - Parameter now: A closure that reads the clock.
  /// - Returns: Whether the budget is spent.
  mutating func isSpent(_ now: () -> Nanoseconds = monotonicNanoseconds) -> Bool {
    remaining &-= 1
    return remaining <= 0 && look(at: now())
  }

  private mutating func look(at now: Nanoseconds) -> Bool {
    let duration = now - (last ?? now)
    // A thread that the system preempted between two readings has not been busy all that time.
    elapsed += min(duration, limit / 2)
    // After a slow call the clock is read at every call.
    if last != nil { interval = duration < limit / 16 ? min(2 * interval, 16) : 1 }
    last = now
    count += step
    step = min(interval, most - count)
    remaining = step
    return elapsed >= limit || step <= 0
  }

  /// Leaves the current actor, so that tasks that wait for it run before the caller resumes.
  @concurrent
  @inline(never)
  static func leaveActor() async {
    // The compiler would remove a hop to an empty body.
    _ = monotonicNanoseconds()
  }

  /// Continues work in a task, turn by turn, so that it blocks no caller.
  ///
  /// - Parameter takeTurn: A closure that works until its budget is spent, and returns whether work remains.
  @usableFromInline
  static func continueInTask(_ takeTurn: @escaping @Sendable () -> Bool) {
    Task.detached(priority: Task.currentPriority) {
      while takeTurn() { await Task.yield() }
    }
  }
}
