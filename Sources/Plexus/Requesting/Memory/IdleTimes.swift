/// The times at which the values of a table were last used.
///
/// The times have the indices of the entries and follow the table when it moves them, so that entries of a cache
/// without a time to idle are no larger.
@usableFromInline
struct IdleTimes: Hashable, Sendable {
  /// The time for which a value is fresh after its last use.
  private let timeToIdle: Nanoseconds
  private var lastUses: ContiguousArray<Nanoseconds> = []

  @usableFromInline
  init(timeToIdle: Nanoseconds) {
    self.timeToIdle = timeToIdle
  }

  /// Returns the time at which a value becomes idle.
  @usableFromInline
  func deadline(of index: Int) -> Nanoseconds {
    lastUses[index].addingSaturating(timeToIdle)
  }

  /// Records a use, unless the value is idle already.
  ///
  /// - Returns: Whether it was used in time.
  @usableFromInline
  mutating func use(_ index: Int, at now: Nanoseconds) -> Bool {
    guard now < deadline(of: index) else { return false }
    lastUses[index] = now
    return true
  }

  /// Records that an entry has got a value.
  @usableFromInline
  mutating func renew(_ index: Int, at now: Nanoseconds) {
    lastUses[index] = now
  }

  // MARK: - Following the table

  /// Adds the time of a new last entry, without a value.
  @usableFromInline
  mutating func append() {
    lastUses.append(.min)
  }

  /// Removes the time of an entry; the last one takes its index.
  @usableFromInline
  mutating func remove(at index: Int) {
    lastUses.swapAt(index, lastUses.count - 1)
    lastUses.removeLast()
  }

  /// Removes all times.
  @usableFromInline
  mutating func removeAll() {
    lastUses = []
  }
}
