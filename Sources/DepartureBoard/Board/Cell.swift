/// What a row knows of one of the things that it has asked for.
enum Cell<Value: Hashable & Sendable>: Hashable, Sendable {
  /// There is no answer yet.
  case pending
  /// The value, fresh or stale.
  case known(Value, isStale: Bool)
  /// The origin says that there is no such thing.
  case absent(isStale: Bool)
  /// The question could not be answered, and there is no earlier answer.
  case unanswered

  /// The value, if there is one.
  var value: Value? {
    if case .known(let value, _) = self { value } else { nil }
  }

  /// Whether the answer is too old to be trusted.
  var isStale: Bool {
    switch self {
    case .known(_, let isStale), .absent(let isStale): isStale
    case .pending, .unanswered: false
    }
  }

  /// Whether asking again could bring something better.
  var isWanting: Bool {
    isStale || self == .unanswered
  }

  /// Whether there is an answer, if not a fresh one.
  var isAnswered: Bool {
    switch self {
    case .known, .absent: true
    case .pending, .unanswered: false
    }
  }
}
