/// One of the details of a row.
enum Cell<Value: Hashable & Sendable>: Hashable, Sendable {
  /// There is no answer yet.
  case pending
  /// The value, fresh or stale.
  case known(Value, isStale: Bool)
  /// The origin has no such value.
  case absent(isStale: Bool)
  /// The lookup failed, and there is no earlier answer.
  case unanswered

  /// The value, if there is one.
  var value: Value? {
    if case .known(let value, _) = self { value } else { nil }
  }

  /// Whether the answer is stale.
  var isStale: Bool {
    switch self {
    case .known(_, let isStale), .absent(let isStale): isStale
    case .pending, .unanswered: false
    }
  }

  /// Whether another lookup could improve the answer.
  var isWanting: Bool {
    isStale || self == .unanswered
  }

  /// Whether there is an answer, fresh or stale.
  var isAnswered: Bool {
    switch self {
    case .known, .absent: true
    case .pending, .unanswered: false
    }
  }
}
