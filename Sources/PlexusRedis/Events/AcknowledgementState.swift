/// The acknowledgements of a node that are sent, and not confirmed.
///
/// Invariants:
///
/// - An acknowledgement is not waited for only over a connection on which the engine has confirmed another one, and only if
///   none fails at the moment.
/// - At most ``limit`` of them are not confirmed.
struct AcknowledgementState: Sendable {
  /// The number of events that can be delivered again because their acknowledgements are lost on the way.
  static let limit = 32

  /// The number of acknowledgements that are not confirmed.
  private(set) var count = 0
  private var failingCount = 0
  /// The connections over which the engine has confirmed one, of which a cluster has several.
  private var confirmed: Set<Int> = []

  /// Begins one that is not waited for.
  ///
  /// - Returns: Whether it may be sent; otherwise it has to be waited for.
  mutating func begin(over connection: Int) -> Bool {
    guard confirmed.contains(connection), failingCount == 0, count < Self.limit else {
      return false
    }
    count += 1
    return true
  }

  /// Ends one that is confirmed.
  mutating func end() {
    count -= 1
  }

  /// Records that one is not confirmed, and is sent again.
  mutating func fail() {
    failingCount += 1
    confirmed = []
  }

  /// Ends one that has failed, whether the engine has confirmed it at last or not.
  mutating func endFailed() {
    failingCount -= 1
    count -= 1
  }

  /// Records that one was confirmed that was waited for.
  mutating func confirm(over connection: Int) {
    if confirmed.count >= Self.limit { confirmed = [] }
    confirmed.insert(connection)
  }
}
