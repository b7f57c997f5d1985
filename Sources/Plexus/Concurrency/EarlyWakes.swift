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
