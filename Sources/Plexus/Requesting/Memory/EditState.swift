/// The updates of one value that are in progress.
///
/// An update runs the caller's code without the lock, on a copy of the value. The version decides whether its result
/// still follows from the value in memory, or has to be computed again.
///
/// Optimistic updates stay here until they are confirmed or reverted, as drafts on top of the value before the
/// first of them.
///
/// Invariants:
///
/// - Without drafts the value in memory is confirmed. With drafts the base is confirmed, and the value in memory is
///   the result of the last draft.
/// - The first draft is not confirmed: a confirmed one becomes the base as soon as no draft is below it.
@usableFromInline
struct EditState<Value: Sendable, Change: Sendable>: Sendable {
  /// A change on top of the base.
  @usableFromInline
  struct Draft: Sendable {
    @usableFromInline
    enum Phase: Hashable, Sendable {
      case pending, confirmed
      /// Reverted, but part of the drafts above it.
      case failed
    }

    @usableFromInline let id: UInt64
    /// The change; `nil` if it cannot be reapplied.
    @usableFromInline let change: Change?
    @usableFromInline var result: Value
    @usableFromInline var phase: Phase

    @inlinable
    init(id: UInt64, change: Change?, result: Value, phase: Phase) {
      self.id = id
      self.change = change
      self.result = result
      self.phase = phase
    }
  }

  /// The consequence of an optimistic update that has succeeded.
  @usableFromInline
  enum Confirmation: Hashable, Sendable {
    case nothing
    /// The base has changed to a value that no cacher has.
    case changesBase
    /// The value was replaced by one that can be older than the update.
    case refreshes
  }

  /// The consequence of an optimistic update that has failed.
  @usableFromInline
  enum Reversal: Sendable {
    case nothing
    /// The changes have to be reapplied, beginning with the value below the reverted draft.
    case reapplies(to: Value, changes: [Change], version: UInt64)
    /// A change that cannot be reapplied is on top of it.
    case refreshes
  }

  /// The number of times that the value was replaced or removed since the first of these updates began.
  @usableFromInline var version: UInt64 = 0
  /// The number of updates that are computing a value.
  @usableFromInline var computations = 0
  /// The confirmed value, if the one in memory is not.
  @usableFromInline var base: Value?
  @usableFromInline var drafts: [Draft] = []
  /// The updates whose drafts were removed, because the value was replaced by one that can be older.
  @usableFromInline var displaced: Set<UInt64> = []
  /// The values to be released with no lock held.
  @usableFromInline var retired: [Value?] = []
  @usableFromInline var retiredDrafts: [Draft] = []

  @inlinable
  init() {}

  /// Whether no update needs the state anymore.
  @inlinable
  var isEmpty: Bool { computations == 0 && drafts.isEmpty && displaced.isEmpty }

  // MARK: - Computing

  /// Records that an update takes a copy of the value.
  ///
  /// - Returns: The version of the copy.
  @inlinable
  mutating func begin() -> UInt64 {
    computations += 1
    return version
  }

  /// Records that an update has computed a value.
  ///
  /// - Parameter version: The version of the copy that it began with.
  /// - Returns: Whether the value in memory is still the one that it began with.
  @inlinable
  mutating func end(_ version: UInt64) -> Bool {
    computations -= 1
    return version == self.version
  }

  // MARK: - Replacing the value

  /// Removes all drafts, because the value was removed, or replaced by one that can be older than the drafts.
  @inlinable
  mutating func displace() {
    version += 1
    displaced.formUnion(drafts.lazy.filter { $0.phase == .pending }.map(\.id))
    retire()
  }

  /// Removes all drafts, because the value was replaced by one that is newer than all of them.
  @inlinable
  mutating func replace() {
    version += 1
    displaced = []
    retire()
  }

  @inlinable
  mutating func retire() {
    retired.append(base)
    retiredDrafts += drafts
    base = nil
    drafts = []
  }

  // MARK: - Changing the value

  /// Records a change of the value that is confirmed and cannot be reapplied.
  @inlinable
  mutating func overlay(_ result: Value) {
    version += 1
    guard !drafts.isEmpty else { return }
    drafts.append(Draft(id: 0, change: nil, result: result, phase: .confirmed))
  }

  /// Records an optimistic change of the value.
  ///
  /// - Parameters:
  ///   - id: The number of the update, which is not zero.
  ///   - change: The change.
  ///   - old: The value before it.
  ///   - result: The value after it.
  @inlinable
  mutating func draft(_ id: UInt64, _ change: Change, of old: Value, result: Value) {
    version += 1
    if drafts.isEmpty { base = old }
    drafts.append(Draft(id: id, change: change, result: result, phase: .pending))
  }

  /// Records an optimistic update that begins without a value.
  @inlinable
  mutating func beginWithoutValue(_ id: UInt64) {
    displaced.insert(id)
  }

  /// Ends an optimistic update that has succeeded.
  @inlinable
  mutating func confirm(_ id: UInt64) -> Confirmation {
    if displaced.remove(id) != nil { return .refreshes }
    guard let index = drafts.firstIndex(where: { $0.id == id }) else { return .nothing }
    drafts[index].phase = .confirmed
    return settle() ? .changesBase : .nothing
  }

  /// Ends an optimistic update that has failed, or returns the changes to reapply first.
  @inlinable
  mutating func revert(_ id: UInt64) -> Reversal {
    if displaced.remove(id) != nil { return .nothing }
    guard let index = drafts.firstIndex(where: { $0.id == id }) else { return .nothing }
    let later = drafts[(index + 1)...]
    guard let below = index > 0 ? drafts[index - 1].result : base,
      later.allSatisfy({ $0.change != nil })
    else {
      drafts[index].phase = .failed
      return .refreshes
    }
    return .reapplies(to: below, changes: later.compactMap(\.change), version: version)
  }

  /// Removes a draft whose update has failed.
  ///
  /// - Parameters:
  ///   - id: The number of the update.
  ///   - results: The results of the drafts above it without it.
  ///   - version: The version that they were computed from.
  /// - Returns: The new value in memory, and whether the base has changed to one that no cacher has; `nil` if the
  ///   results were computed from another version.
  @inlinable
  mutating func remove(
    _ id: UInt64,
    results: [Value],
    version: UInt64
  ) -> (value: Value, changesBase: Bool)? {
    guard version == self.version, let index = drafts.firstIndex(where: { $0.id == id }) else {
      return nil
    }
    self.version += 1
    retiredDrafts.append(drafts.remove(at: index))
    for (offset, result) in results.enumerated() {
      retired.append(drafts[index + offset].result)
      drafts[index + offset].result = result
    }
    let value = drafts.last?.result ?? base
    let changesBase = settle()
    return value.map { ($0, changesBase) }
  }

  /// Replaces the base with the confirmed drafts that have no other draft below them.
  ///
  /// - Returns: Whether there were any.
  @inlinable
  mutating func settle() -> Bool {
    var isChanged = false
    while let first = drafts.first, first.phase == .confirmed {
      retired.append(base)
      base = first.result
      retiredDrafts.append(drafts.removeFirst())
      isChanged = true
    }
    if drafts.isEmpty {
      retired.append(base)
      base = nil
    }
    return isChanged
  }
}
