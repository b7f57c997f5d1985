/// A model of the changes on top of a value: optimistic updates, and updates on top of these.
///
/// Changes stay in the list until a newer value replaces them, also after they are committed.
struct ChangesModel {
  /// The consequence of the end of an optimistic update.
  struct End {
    var content: Int?
    var refreshes = false
  }

  private struct Change {
    /// The number of the optimistic update; `nil` for an update, which results in a constant.
    var number: Int?
    var constant = 0
    var isOpen = false
    /// Whether it was committed during the running fetch.
    var isLate = false
    /// Whether only the running fetch can lack it: no open one is below it, and there is no value.
    var isForFetch = false
    /// Whether the value below it was replaced or removed since.
    var isOvertaken = false
  }

  /// The optimistic updates whose commits have not ended.
  private(set) var uncommitted: [Int] = []
  private var count = 0
  private var base: Int?
  private var changes: [Change] = []
  /// The optimistic updates that were open when the value was cleared.
  private var displaced: Set<Int> = []

  /// Returns the result of an optimistic update.
  static func result(of number: Int, on content: Int) -> Int {
    content &* 31 &+ number
  }

  /// Returns whether the commit of an optimistic update fails.
  static func fails(_ number: Int) -> Bool {
    number % 3 == 0
  }

  private var content: Int? {
    base.map { base in
      changes.reduce(base) { content, change in
        change.number.map { Self.result(of: $0, on: content) } ?? change.constant
      }
    }
  }

  /// Begins an optimistic update, and returns its number, and the new content if there is a value.
  mutating func begin(on value: Int?) -> (number: Int, result: Int?) {
    count += 1
    uncommitted.append(count)
    if value != nil { endFetch() }
    if changes.isEmpty { base = value }
    changes.append(Change(number: count, isOpen: true, isOvertaken: value == nil))
    return (count, content)
  }

  /// Records an update.
  mutating func update(to constant: Int) {
    endFetch()
    if !changes.isEmpty { changes.append(Change(constant: constant)) }
  }

  /// Records that a value is stored, and returns the visible one.
  mutating func store(_ value: Int) -> Int {
    replaceBase(with: value) { $0.isOpen }
  }

  /// Records that a value is fetched, and returns the visible one.
  mutating func fetch(_ value: Int) -> Int {
    replaceBase(with: value) { $0.isOpen || $0.isLate }
  }

  private mutating func replaceBase(with value: Int, keeping isKept: (Change) -> Bool) -> Int {
    changes = changes.filter(isKept)
    base = value
    for index in changes.indices {
      changes[index].isOvertaken = true
      changes[index].isForFetch = false
    }
    endFetch()
    return content ?? value
  }

  /// Records that the running fetch has ended, or is not used.
  mutating func endFetch() {
    changes.removeAll(where: \.isForFetch)
    for index in changes.indices { changes[index].isLate = false }
    if !changes.contains(where: { $0.isOpen }) {
      base = content
      changes = []
    }
  }

  /// Records that the value has left memory.
  mutating func removeValue() {
    base = nil
    for index in changes.indices { changes[index].isOvertaken = true }
    // What is part of the confirmed value has left memory with it, unless the running fetch can lack it.
    let lastUpdate = changes.lastIndex { $0.number == nil } ?? -1
    let firstOpen = changes.firstIndex { $0.isOpen } ?? changes.endIndex
    let kept = changes.indices.filter { index in
      let isFixed = !changes[index].isOpen && (index < firstOpen || index <= lastUpdate)
      return !isFixed || changes[index].isLate
    }
    changes = kept.map { changes[$0] }
  }

  /// Records that the value is cleared.
  mutating func clear() {
    displaced.formUnion(changes.filter(\.isOpen).compactMap(\.number))
    base = nil
    changes = []
  }

  /// Ends an optimistic update.
  mutating func end(_ number: Int, hasValue: Bool, isBeingFetched: Bool) -> End {
    uncommitted.removeAll { $0 == number }
    let isDisplaced = displaced.remove(number) != nil
    guard let index = changes.firstIndex(where: { $0.number == number }) else {
      return End(refreshes: isDisplaced && !Self.fails(number))
    }
    if Self.fails(number) {
      let isBelowUpdate = changes[index...].contains { $0.number == nil }
      changes.remove(at: index)
      let end = End(content: content, refreshes: isBelowUpdate)
      guard hasValue else { return End(refreshes: dropCommitted()) }
      if !changes.contains(where: { $0.isOpen || $0.isLate }) { changes = [] }
      return end
    }
    changes[index].isOpen = false
    changes[index].isLate = isBeingFetched
    let end = End(refreshes: changes[index].isOvertaken || !hasValue)
    if hasValue {
      if !changes.contains(where: { $0.isOpen || $0.isLate }) { changes = [] }
    } else {
      _ = dropCommitted()
    }
    return end
  }

  /// Removes committed changes that have no open one below them, and no value.
  private mutating func dropCommitted() -> Bool {
    let firstOpen = changes.firstIndex { $0.isOpen } ?? changes.endIndex
    let dropped = changes[..<firstOpen].filter { !$0.isLate }
    var late = changes[..<firstOpen].filter(\.isLate)
    for index in late.indices { late[index].isForFetch = true }
    changes = late + changes[firstOpen...]
    return !dropped.isEmpty
  }
}
