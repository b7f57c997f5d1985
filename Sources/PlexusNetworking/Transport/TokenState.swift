/// Which tokens the requests of a ``TokenTransport`` are sent with, by the number of rejections so far.
///
/// Invariants:
///
/// - A token is rejected at most once: a rejection of an older one than the present changes nothing.
/// - Between a rejection and the first newer token, no request is sent with an older one.
/// - The end of an account is reported once until there is a token again.
struct TokenState: Sendable {
  /// The number of rejections that a request is sent after.
  struct Turn: Hashable, Sendable {
    fileprivate let number: Int
    /// The number of tokens that had been obtained.
    fileprivate let obtainedCount: Int
    /// Whether only a token that is fetched or stored after the last rejection is sent.
    let needsNewer: Bool
  }

  private var number = 0
  private var obtainedCount = 0
  private var needsNewer = false
  private var isSignedIn = true

  /// The turn of a request that is sent now.
  var turn: Turn { Turn(number: number, obtainedCount: obtainedCount, needsNewer: needsNewer) }

  /// Whether no token has been rejected since a turn.
  func isCurrent(_ turn: Turn) -> Bool { turn.number == number }

  /// The token of a turn was rejected.
  ///
  /// - Returns: Whether it has to be refreshed; `false` if that has been done since it was sent.
  mutating func reject(_ turn: Turn) -> Bool {
    guard isCurrent(turn) else { return false }
    number += 1
    needsNewer = true
    return true
  }

  /// There is a token for a turn.
  mutating func obtain(_ turn: Turn) {
    isSignedIn = true
    guard isCurrent(turn) else { return }
    needsNewer = false
    obtainedCount += 1
  }

  /// There is no token for a turn, and none will come until the user signs in, unless one has been obtained since.
  ///
  /// - Parameters:
  ///   - turn: The turn.
  ///   - hadToken: Whether there has been a token since the last report, also one that no request was sent with.
  /// - Returns: Whether that has to be reported.
  mutating func end(_ turn: Turn, hadToken: Bool = false) -> Bool {
    if hadToken { isSignedIn = true }
    guard turn.obtainedCount == obtainedCount, isSignedIn else { return false }
    isSignedIn = false
    return true
  }
}
