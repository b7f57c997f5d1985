/// The kinds of command that a server refuses, although it is connected.
///
/// A refusal ends when a command of the kind has succeeded, but not within two seconds of the last one: commands of one
/// kind can be refused for some keys only.
struct RefusalState: Sendable {
  private static let hold: Nanoseconds = 2_000_000_000

  private struct Refusal: Sendable {
    let purpose: String
    var error: RedisEngineError
    var time: Nanoseconds
    /// Whether a command of the kind has succeeded since then.
    var isOver = false
  }

  private var refusals: [Refusal] = []

  /// Whether nothing is refused.
  var isEmpty: Bool { refusals.isEmpty }

  /// The refusal that began first.
  var current: RedisEngineError? { refusals.first?.error }

  /// Records the refusal of a command.
  mutating func refuse(_ purpose: String, _ error: RedisEngineError, at now: Nanoseconds) {
    guard let index = refusals.firstIndex(where: { $0.purpose == purpose }) else {
      return refusals.append(Refusal(purpose: purpose, error: error, time: now))
    }
    refusals[index] = Refusal(purpose: purpose, error: error, time: now)
  }

  /// Records the success of a command.
  ///
  /// Any command ends the refusals of other kinds that are over.
  mutating func succeed(_ purpose: String, at now: Nanoseconds) {
    for index in refusals.indices where refusals[index].purpose == purpose {
      refusals[index].isOver = true
    }
    refusals.removeAll { $0.isOver && now - $0.time >= Self.hold }
  }

  /// Records that a kind of command is no longer refused, unless that was later than at a time.
  mutating func forget(_ purpose: String, before time: Nanoseconds) {
    refusals.removeAll { $0.purpose == purpose && $0.time < time }
  }

  /// Records that a kind of command is no longer refused.
  mutating func end(_ purpose: String) {
    refusals.removeAll { $0.purpose == purpose }
  }

  /// Forgets the refusals of a connection that has ended.
  mutating func removeAll() {
    refusals = []
  }
}
