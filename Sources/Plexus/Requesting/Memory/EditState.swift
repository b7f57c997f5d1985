/// The updates of one value that are under way.
///
/// An update runs the caller's code without the lock, on a copy of the value. The version decides whether its result
/// still follows from the value in memory, or has to be computed again.
///
/// Optimistic updates stay here until they are confirmed or taken back, as drafts on top of the value that was there
/// before the first of them.
///
/// Invariants:
///
/// - Without drafts the value in memory is confirmed. With drafts, the base is, and the value in memory is the result of
///   the last one.
/// - The first draft is not confirmed: a confirmed one becomes the base as soon as nothing is below it.
@usableFromInline
struct EditState<Value: Sendable, Change: Sendable>: Sendable {
  /// A change on top of the base.
  struct Draft: Sendable {
    enum Phase: Hashable, Sendable {
      case pending, confirmed
      /// Taken back, but part of the drafts above it.
      case failed
    }

    let id: UInt64
    /// The change; `nil` if it cannot be made again.
    let change: Change?
    var result: Value
    var phase: Phase
  }

  /// What follows from the end of an optimistic update that has succeeded.
  enum Confirmation: Hashable, Sendable {
    case nothing
    /// The base is another value, which no cacher has.
    case changesBase
    /// The value was replaced by one that may be from before.
    case refreshes
  }

  /// What follows from the end of an optimistic update that has failed.
  enum Reversal: Sendable {
    case nothing
    /// The changes have to be made again, beginning with the value below the one that is taken back.
    case reapplies(to: Value, changes: [Change], version: UInt64)
    /// A change that cannot be made again stands on top of it.
    case refreshes
  }

  /// The number of times that the value was replaced or removed since the first of these updates began.
  private(set) var version: UInt64 = 0
  /// The number of updates that are computing a value.
  private var computations = 0
  /// The confirmed value, if the one in memory is not.
  private(set) var base: Value?
  private(set) var drafts: [Draft] = []
  /// The updates whose drafts are gone, because the value was replaced by something that may be from before.
  private var displaced: Set<UInt64> = []
  /// What is to be released with no lock held.
  private var retired: [Value?] = []
  private var retiredDrafts: [Draft] = []

  init() {}

  /// Whether no update needs the state any more.
  var isEmpty: Bool { computations == 0 && drafts.isEmpty && displaced.isEmpty }

  // MARK: - Computing

  /// Notes that an update takes a copy of the value.
  ///
  /// - Returns: The version of the copy.
  mutating func begin() -> UInt64 {
    computations += 1
    return version
  }

  /// Notes that an update has computed a value.
  ///
  /// - Parameter version: The version of the copy that it began with.
  /// - Returns: Whether the value in memory is still the one that it began with.
  mutating func end(_ version: UInt64) -> Bool {
    computations -= 1
    return version == self.version
  }

  // MARK: - Replacing the value

  /// The value was replaced or removed by something that may be from before the drafts.
  mutating func displace() {
    version += 1
    displaced.formUnion(drafts.lazy.filter { $0.phase == .pending }.map(\.id))
    retire()
  }

  /// The value was replaced by one that is newer than all drafts.
  mutating func replace() {
    version += 1
    displaced = []
    retire()
  }

  private mutating func retire() {
    retired.append(base)
    retiredDrafts += drafts
    base = nil
    drafts = []
  }

  // MARK: - Changing the value

  /// The value has become another one by a change that is confirmed and cannot be made again.
  mutating func overlay(_ result: Value) {
    version += 1
    guard !drafts.isEmpty else { return }
    drafts.append(Draft(id: 0, change: nil, result: result, phase: .confirmed))
  }

  /// The value has become another one by an optimistic change.
  ///
  /// - Parameters:
  ///   - id: The number of the update, which is not zero.
  ///   - change: The change.
  ///   - old: The value before it.
  ///   - result: The value after it.
  mutating func draft(_ id: UInt64, _ change: Change, of old: Value, result: Value) {
    version += 1
    if drafts.isEmpty { base = old }
    drafts.append(Draft(id: id, change: change, result: result, phase: .pending))
  }

  /// An optimistic update begins without a value.
  mutating func beginWithoutValue(_ id: UInt64) {
    displaced.insert(id)
  }

  /// An optimistic update has succeeded.
  mutating func confirm(_ id: UInt64) -> Confirmation {
    if displaced.remove(id) != nil { return .refreshes }
    guard let index = drafts.firstIndex(where: { $0.id == id }) else { return .nothing }
    drafts[index].phase = .confirmed
    return settle() ? .changesBase : .nothing
  }

  /// An optimistic update has failed.
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

  /// Takes a draft out whose update has failed.
  ///
  /// - Parameters:
  ///   - id: The number of the update.
  ///   - results: The results of the drafts above it without it.
  ///   - version: The version that they were computed from.
  /// - Returns: The value in memory from now on, and whether the base is another value, which no cacher has; `nil` if
  ///   the results were computed from another version.
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

  /// Makes confirmed drafts that nothing is below the base.
  ///
  /// - Returns: Whether there were some.
  private mutating func settle() -> Bool {
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
