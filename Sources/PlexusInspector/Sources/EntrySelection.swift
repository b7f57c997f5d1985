internal import Plexus

/// The best entries for a window, chosen from any number of them in bounded memory.
struct EntrySelection {
  /// An entry and its position in the order.
  struct Choice {
    let position: EntryQuery.Position
    let row: EntryRow
  }

  private let query: EntryQuery
  /// The time from which ages are measured, in seconds.
  private let now: Double
  private var choices: [Choice] = []
  /// The last position that can still be in the window.
  private var bound: EntryQuery.Position?
  /// The number of entries that match, in the window or not.
  private(set) var matchCount = 0

  init(_ query: EntryQuery, now: Double) {
    self.query = query
    self.now = now
  }

  /// Considers an entry whose key matches.
  mutating func consider(_ row: EntryRow) {
    if let state = query.state, row.state != state { return }
    matchCount += 1
    let number = number(of: row)
    if let bound, precedes(bound.number, number) { return }
    if let start = query.position, precedes(number, start.number) { return }
    let position = EntryQuery.Position(
      number: number,
      key: row.key().shown.shortened(to: EntryQuery.keyLimit),
      hash: row.hash
    )
    if let start = query.position, !precedes(start, position) { return }
    if let bound, !precedes(position, bound) { return }
    choices.append(Choice(position: position, row: row))
    if choices.count >= EntryQuery.limit * 4 { shrink() }
  }

  /// Returns the window in its order, and whether there are entries after it.
  mutating func finish() -> (window: [Choice], hasMore: Bool) {
    sort()
    let hasMore = bound != nil || choices.count > EntryQuery.limit
    return (Array(choices.prefix(EntryQuery.limit)), hasMore)
  }

  private mutating func sort() {
    let isDescending = query.isDescending
    choices.sort { one, other in
      isDescending ? other.position < one.position : one.position < other.position
    }
  }

  private mutating func shrink() {
    sort()
    choices.removeLast(choices.count - EntryQuery.limit)
    bound = choices.last?.position
  }

  private func number(of row: EntryRow) -> Double {
    switch query.order {
    case .key: 0
    case .state:
      switch row.state {
      case .fresh: 0
      case .stale: 1
      case .failed: 2
      }
    // Rounded, since each entry is measured at a moment of its own.
    case .age: Self.tenths(row.age.seconds - now)
    case .timeLeft: row.timeLeft.map { Self.tenths($0.seconds + now) } ?? .infinity
    case .cost: Double(row.cost)
    }
  }

  private static func tenths(_ seconds: Double) -> Double { (seconds * 10).rounded() }

  private func precedes<Value: Comparable>(_ one: Value, _ other: Value) -> Bool {
    query.isDescending ? other < one : one < other
  }
}

/// The keys whose entries can be in a window in the order of keys, chosen while all keys are looked at in turn.
struct KeySelection {
  private let query: EntryQuery
  private var keys: [EntryQuery.Position] = []
  /// The last key that can still be in the window, or is the first one after it.
  private var bound: EntryQuery.Position?
  /// The number of keys that were looked at.
  private(set) var matchCount = 0

  init(_ query: EntryQuery) {
    self.query = query
  }

  /// Considers a key that matches.
  ///
  /// - Parameters:
  ///   - text: The text of the key as it is shown.
  ///   - hash: The hash of the key.
  /// - Returns: Whether its entry can be in the window, or shows that there are entries after it.
  mutating func includes(_ text: String, hash: Int) -> Bool {
    matchCount += 1
    let key = EntryQuery.Position(number: 0, key: text, hash: hash)
    if let start = query.position, !precedes(start, key) { return false }
    if let bound, !precedes(key, bound) { return false }
    keys.append(key)
    if keys.count >= EntryQuery.limit * 4 {
      keys.sort(by: precedes)
      keys.removeLast(keys.count - EntryQuery.limit - 1)
      bound = keys.last
    }
    return true
  }

  private func precedes(_ one: EntryQuery.Position, _ other: EntryQuery.Position) -> Bool {
    query.isDescending ? other < one : one < other
  }
}
