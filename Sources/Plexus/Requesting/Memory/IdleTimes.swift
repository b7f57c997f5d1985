/// When the values of a table were used last.
///
/// The times are in the places of the entries, and follow the table when it moves them, so that entries of a cache
/// without a time to idle are no larger.
@usableFromInline
struct IdleTimes: Hashable, Sendable {
  /// How long a value is fresh after its last use.
  @usableFromInline let timeToIdle: Nanoseconds
  @usableFromInline var lastUses: ContiguousArray<Nanoseconds> = []

  @inlinable
  init(timeToIdle: Nanoseconds) {
    self.timeToIdle = timeToIdle
  }

  /// The time at which a value becomes idle.
  @inlinable
  func deadline(of index: Int) -> Nanoseconds {
    lastUses[index].addingSaturating(timeToIdle)
  }

  /// Notes a use, unless the value is idle already.
  ///
  /// - Returns: Whether it was used in time.
  @inlinable
  mutating func use(_ index: Int, at now: Nanoseconds) -> Bool {
    guard now < deadline(of: index) else { return false }
    lastUses[index] = now
    return true
  }

  /// Notes that an entry has got a value.
  @inlinable
  mutating func renew(_ index: Int, at now: Nanoseconds) {
    lastUses[index] = now
  }

  // MARK: - Following the table

  /// The table has a new last entry, without a value.
  @inlinable
  mutating func append() {
    lastUses.append(.min)
  }

  /// The table has removed an entry and put its last one in that place.
  @inlinable
  mutating func remove(at index: Int) {
    lastUses.swapAt(index, lastUses.count - 1)
    lastUses.removeLast()
  }

  /// The table is empty.
  @inlinable
  mutating func removeAll() {
    lastUses = []
  }
}
