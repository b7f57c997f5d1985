/// A model of the changes on top of a value: optimistic updates, and updates on top of these.
///
/// Changes stay until the value is replaced, also after they are committed: only those below or above matter.
struct ChangesModel {
  /// The consequence of the end of an optimistic update.
  enum End {
    case nothing, refreshes
    case changes(to: Int)
  }

  private struct Change {
    /// The number of the optimistic update; `nil` for an update, which cannot be repeated.
    let number: Int?
    var result: Int
  }

  /// The optimistic updates whose commits have not ended.
  private(set) var uncommitted: [Int] = []
  private var count = 0
  private var base = 0
  private var changes: [Change] = []
  /// The optimistic updates whose changes are gone, or were never made, though the value can be older than they are.
  private var displaced: Set<Int> = []

  /// Returns the result of an optimistic update.
  static func result(of number: Int, on content: Int) -> Int {
    content &* 31 &+ number
  }

  /// Returns whether the commit of an optimistic update fails.
  static func fails(_ number: Int) -> Bool {
    number % 3 == 0
  }

  /// Begins an optimistic update, and returns the new content if there is a value.
  mutating func begin(on content: Int?) -> (number: Int, result: Int?) {
    count += 1
    uncommitted.append(count)
    guard let content else {
      displaced.insert(count)
      return (count, nil)
    }
    let result = Self.result(of: count, on: content)
    if changes.isEmpty { base = content }
    changes.append(Change(number: count, result: result))
    return (count, result)
  }

  /// Records an update.
  mutating func update(to result: Int) {
    if !changes.isEmpty { changes.append(Change(number: nil, result: result)) }
  }

  /// Records that a newer value is stored.
  mutating func replace() {
    displaced = []
    changes = []
  }

  /// Records that the value is removed, or fetched.
  mutating func displace() {
    displaced.formUnion(changes.compactMap(\.number).filter(uncommitted.contains))
    changes = []
  }

  /// Ends an optimistic update.
  mutating func end(_ number: Int) -> End {
    uncommitted.removeAll { $0 == number }
    let isDisplaced = displaced.remove(number) != nil
    guard Self.fails(number) else { return isDisplaced ? .refreshes : .nothing }
    guard let index = changes.firstIndex(where: { $0.number == number }) else { return .nothing }
    let later = changes[(index + 1)...].compactMap(\.number)
    guard later.count == changes.count - index - 1 else { return .refreshes }
    var content = index > 0 ? changes[index - 1].result : base
    changes.removeSubrange(index...)
    for number in later {
      content = Self.result(of: number, on: content)
      changes.append(Change(number: number, result: content))
    }
    return .changes(to: content)
  }
}
