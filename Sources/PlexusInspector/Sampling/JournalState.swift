/// The newest records of a log, and which of them a page has not seen.
///
/// Invariants:
///
/// - Revisions increase with every record and with every record that is settled later.
/// - It has at most as many records as its capacity.
struct JournalState<Record: Sendable>: Sendable {
  /// A record with its number in the log.
  struct Item: Sendable {
    let number: Int
    let record: Record
    /// The time at which it was read, in seconds since 1970, or `nil` if it had waited in the log before.
    let time: Double?
    fileprivate(set) var revision: Int
    /// Whether it can still change.
    fileprivate(set) var isOpen: Bool
  }

  private(set) var items: [Item] = []
  /// The number of records so far.
  private(set) var count = 0
  /// The number of records so far whose time is known.
  private(set) var recentCount = 0
  /// The newest revision.
  private(set) var revision = 0
  private let capacity: Int

  init(capacity: Int) {
    self.capacity = capacity
  }

  /// Appends a record.
  ///
  /// - Returns: Records that are no longer kept, to be released with no lock held.
  mutating func append(_ record: Record, at time: Double?, isOpen: Bool) -> ArraySlice<Item> {
    count += 1
    if time != nil { recentCount += 1 }
    revision += 1
    items.append(
      Item(number: count, record: record, time: time, revision: revision, isOpen: isOpen)
    )
    // A quarter at a time, so that the others are rarely moved.
    guard items.count > capacity + capacity / 4 else { return [] }
    defer { items.removeFirst(items.count - capacity) }
    return items[..<(items.count - capacity)]
  }

  /// Records that records have changed for the last time.
  mutating func settle(_ numbers: Set<Int>) {
    guard !numbers.isEmpty else { return }
    for index in items.indices where numbers.contains(items[index].number) {
      revision += 1
      items[index].revision = revision
      items[index].isOpen = false
    }
  }

  /// Returns the records that are new or have changed since a revision: the newest ones, oldest first.
  func changes(since revision: Int, limit: Int) -> (items: [Item], omittedCount: Int) {
    let changes = items.suffix(capacity).filter { $0.revision > revision }
    return (Array(changes.suffix(limit)), max(0, changes.count - limit))
  }

  /// Returns the record with a number, if it is kept.
  func item(_ number: Int) -> Item? {
    guard let first = items.first?.number, items.indices.contains(number - first) else {
      return nil
    }
    return items[number - first]
  }
}
