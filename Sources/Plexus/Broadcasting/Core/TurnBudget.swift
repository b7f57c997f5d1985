/// The time that a loop of handlers keeps its actor before it lets others have it: about a millisecond.
///
/// Reading the clock costs as much as a fast handler, so that it is read after the second call and then after 1,
/// 2, 4, 8 and at last each 16 calls, as long as they are fast.
struct TurnBudget: Sendable {
  private static let limit: Nanoseconds = 1_000_000
  /// The most that counts between two readings: a thread that the system has stopped once in between has not kept
  /// its actor busy.
  private static let most = limit / 2

  private var elapsed: Nanoseconds = 0
  private var last: Nanoseconds?
  /// How many calls there are before the clock is read.
  private var remaining = 2
  private var interval = 1

  /// Notes a call.
  ///
  /// - Parameter now: Reads the clock.
  /// - Returns: Whether it is time to let others have the actor.
  mutating func isSpent(_ now: () -> Nanoseconds = monotonicNanoseconds) -> Bool {
    remaining &-= 1
    return remaining <= 0 && look(at: now())
  }

  private mutating func look(at now: Nanoseconds) -> Bool {
    let duration = now - (last ?? now)
    elapsed += min(duration, Self.most)
    // Calls that are slow are counted one by one.
    if last != nil { interval = duration < Self.limit / 16 ? min(2 * interval, 16) : 1 }
    last = now
    remaining = interval
    return elapsed >= Self.limit
  }

  /// Leaves the current actor, which others can have meanwhile; the caller comes back behind them.
  @concurrent
  @inline(never)
  static func leaveActor() async {
    // The compiler would not leave the actor for nothing at all.
    _ = monotonicNanoseconds()
  }
}
