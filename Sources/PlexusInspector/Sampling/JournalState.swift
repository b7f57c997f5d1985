/// The newest records of a log, and which of them a page has not seen.
///
/// Invariants:
///
/// - Revisions increase with every record and with every record that is settled later.
/// - Numbers increase with every record.
/// - It has at most as many records as its capacity.
struct JournalState<Record: Sendable>: Sendable {
  /// A record with its number in the log, which also counts the records that were never read.
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
  /// The number of records so far, read or not.
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
  /// - Parameters:
  ///   - record: The record.
  ///   - time: The time at which it was read, unless it had waited before.
  ///   - isOpen: Whether it can still change.
  ///   - number: Its number, if the log counts its records.
  /// - Returns: Records that are no longer kept, to be released with no lock held.
  mutating func append(
    _ record: Record,
    at time: Double?,
    isOpen: Bool,
    number: Int? = nil
  ) -> ArraySlice<Item> {
    let number = max(number ?? 0, count + 1)
    // What the log has counted for other readers before is not recent.
    if time != nil { recentCount += count == 0 ? 1 : number - count }
    count = number
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
  func changes(since revision: Int, limit: Int) -> [Item] {
    items.suffix(capacity).filter { $0.revision > revision }.suffix(limit)
  }

  /// Returns the record with a number, if it is kept.
  func item(_ number: Int) -> Item? {
    var (start, end) = (0, items.count)
    while start < end {
      let middle = (start + end) / 2
      if items[middle].number < number { start = middle + 1 } else { end = middle }
    }
    return start < items.count && items[start].number == number ? items[start] : nil
  }
}
