/// The updates of one value that are in progress.
///
/// An update runs the caller's code without the lock, on a copy of the value. The version decides whether its result
/// still follows from the value in memory, or has to be computed again.
///
/// Optimistic changes stay here as drafts, on top of the confirmed value, until their commits have ended. A value that
/// is stored or fetched meanwhile goes below them.
///
/// A change of ``KeyedCache/update(_:hash:_:)`` cannot be reapplied later. It is computed for every outcome of the
/// commits below it, and these drafts are then part of the confirmed value: there is one value for each set of them.
///
/// Invariants:
///
/// - Without drafts, the value in memory is confirmed, and there are no values here.
/// - With drafts and a value, there are two to the power of ``absorbed`` values, and the value in memory is the result
///   of the last draft, or the last of these values if that draft is part of them.
/// - The first draft that is not part of the values is not confirmed, and no draft that is part of them is.
@usableFromInline
struct EditState<Value: Sendable, Change: Sendable>: Sendable {
  /// A value, and its cost if that has been computed.
  @usableFromInline
  struct Weighed: Sendable {
    let value: Value
    @usableFromInline var cost: Int?

    init(_ value: Value, cost: Int? = nil) {
      self.value = value
      self.cost = cost
    }
  }

  /// An optimistic change.
  struct Draft: Sendable {
    let id: UInt64
    let change: Change
    /// The value with this draft and those below it, unless it is part of the values or there is none.
    var result: Weighed?
    var isConfirmed = false
    /// The number of its confirmation, if that came during the running flight, whose result can lack it.
    var lateNumber: UInt64?
    /// Whether the value below it was replaced or removed since it was made.
    var isOvertaken = false

    init(id: UInt64, change: Change, result: Weighed?) {
      self.id = id
      self.change = change
      self.result = result
    }
  }

  /// The way in which a new value has arrived.
  @usableFromInline
  enum Way: Sendable {
    /// From the origin, by an attempt that has begun after so many confirmations.
    case fetched(after: UInt64)
    /// From the cacher.
    case restored
    /// From the caller; these updates have stored it in their commits.
    case stored(by: [UInt64])
  }

  /// The values that a change that cannot be reapplied is computed for.
  struct Basis: Sendable {
    /// The confirmed values; the last one contains all drafts that are part of them.
    let values: [Value]
    /// The drafts above the values.
    let drafts: [(change: Change, isConfirmed: Bool)]
    /// Whether these drafts become part of the values; otherwise, there would be too many values.
    let absorbsDrafts: Bool
  }

  /// The consequence of an optimistic update that has succeeded.
  struct Confirmation: Hashable, Sendable {
    /// Whether the confirmed value has changed to one that no cacher has.
    var changesBase = false
    /// Whether the value was replaced or removed since, so that it can lack the change, or contain it twice.
    var refreshes = false

    init(changesBase: Bool = false, refreshes: Bool = false) {
      self.changesBase = changesBase
      self.refreshes = refreshes
    }
  }

  /// The consequence of an optimistic update that has failed.
  enum Reversal: Sendable {
    case nothing
    /// A change that was committed above the draft is no longer shown.
    case refreshes
    /// The drafts above have to be reapplied, beginning with the value below the reverted draft.
    case reapplies(to: Weighed, changes: [Change], version: UInt64)
  }

  /// The result of a removal of a draft.
  struct Removal: Sendable {
    /// The value in memory.
    let value: Value
    /// Whether the confirmed value has changed to one that no cacher has.
    let changesBase: Bool
    /// Whether an update was computed without the draft, on a value that its caller has not seen.
    let refreshes: Bool
  }

  /// The largest number of drafts that are part of the values.
  static var limit: Int { 8 }

  /// The number of times that the value was replaced or removed since the first of these updates began.
  var version: UInt64 = 0
  /// The number of updates that are computing a value.
  var computations = 0
  /// The confirmed values, if the one in memory is not confirmed.
  ///
  /// Each bit of an index is one of the first drafts, and is set in the values that contain it.
  private(set) var values: [Weighed] = []
  /// The number of drafts that are part of the values.
  private(set) var absorbed = 0
  private(set) var drafts: [Draft] = []
  /// The drafts that became part of the confirmed value during the running fetch, whose result can lack them.
  private(set) var late: [Draft] = []
  /// The updates whose drafts were removed, because the value was cleared.
  private(set) var displaced: Set<UInt64> = []
  /// The objects to be released with no lock held.
  private(set) var retired: [(values: [Weighed], drafts: [Draft])] = []

  init() {}

  /// Whether no update needs the state anymore.
  var isEmpty: Bool {
    computations == 0 && drafts.isEmpty && displaced.isEmpty && late.isEmpty
  }

  /// The confirmed value, if the one in memory is not confirmed.
  var base: Value? { values.first?.value }

  /// Takes out the objects to be released, if there are any.
  mutating func takeRetired() -> [(values: [Weighed], drafts: [Draft])]? {
    if retired.isEmpty { return nil }
    defer { retired = [] }
    return retired
  }

  // MARK: - Computing

  /// Records that an update takes a copy of the value.
  ///
  /// - Returns: The version of the copy.
  mutating func begin() -> UInt64 {
    computations += 1
    return version
  }

  /// Records that an update has computed a value.
  ///
  /// - Parameter version: The version of the copy that it began with.
  /// - Returns: Whether the value in memory is still the one that it began with.
  mutating func end(_ version: UInt64) -> Bool {
    computations -= 1
    return version == self.version
  }

  /// The values that a change that cannot be reapplied is computed for, if there are drafts.
  var basis: Basis? {
    guard !values.isEmpty else { return nil }
    let above = drafts[absorbed...]
    let pendingCount = above.lazy.filter { !$0.isConfirmed }.count
    return Basis(
      values: values.map(\.value),
      drafts: above.map { ($0.change, $0.isConfirmed) },
      absorbsDrafts: absorbed + pendingCount <= Self.limit
    )
  }

  // MARK: - Replacing the value

  /// Returns the drafts that stay on top of a new value, because that can be older than their commits.
  func drafts(above arrival: Way) -> [Draft] {
    switch arrival {
    case .fetched(let count):
      (late + drafts).filter { !$0.isConfirmed || $0.lateNumber ?? 0 > count }
        .sorted { $0.id < $1.id }
    case .restored: (late + drafts).sorted { $0.id < $1.id }
    case .stored(let ids): drafts.filter { !$0.isConfirmed && !ids.contains($0.id) }
    }
  }

  /// Replaces the value below the drafts.
  ///
  /// - Parameters:
  ///   - base: The new value.
  ///   - results: The results of its ``drafts(above:)``; ignored if there are none anymore.
  ///   - arrival: The way in which it has arrived.
  /// - Returns: The value in memory, and whether the confirmed value is another one than `base`.
  mutating func replace(
    with base: Weighed,
    results: [Weighed],
    _ arrival: Way
  ) -> (value: Weighed, changesBase: Bool) {
    version += 1
    if case .stored(let ids) = arrival { displaced.subtract(ids) }
    var kept = drafts(above: arrival)
    retire()
    for index in kept.indices {
      kept[index].result = results[index]
      kept[index].isOvertaken = true
      kept[index].lateNumber = nil
    }
    values = [base]
    drafts = kept
    retireLate()
    return (drafts.last?.result ?? base, absorbConfirmed())
  }

  /// Records that the value has left memory; a later value goes below the drafts.
  mutating func removeValue() {
    version += 1
    var kept = drafts
    retire()
    for index in kept.indices {
      kept[index].result = nil
      kept[index].isOvertaken = true
    }
    drafts = kept
  }

  /// Removes all drafts, because the value was cleared.
  mutating func clear() {
    version += 1
    displaced.formUnion(drafts.lazy.filter { !$0.isConfirmed }.map(\.id))
    retire()
    retireLate()
  }

  /// Records that the running fetch has ended, or is not used.
  mutating func endFetch() {
    retireLate()
    for index in drafts.indices { drafts[index].lateNumber = nil }
  }

  private mutating func retireLate() {
    if late.isEmpty { return }
    retired.append(([], late))
    late = []
  }

  private mutating func retire() {
    if !values.isEmpty || !drafts.isEmpty { retired.append((values, drafts)) }
    values = []
    drafts = []
    absorbed = 0
  }

  // MARK: - Changing the value

  /// Records a change of the value that is confirmed and cannot be reapplied.
  ///
  /// - Parameters:
  ///   - new: The values of the ``basis`` after the change, including its drafts if these become part of the values.
  ///   - results: The results of the drafts above, if these do not.
  mutating func change(to new: [Weighed], results: [Weighed]) {
    version += 1
    endFetch()
    guard !values.isEmpty else { return }
    retired.append((values, drafts))
    values = new
    if results.isEmpty {
      drafts.removeAll(where: \.isConfirmed)
      for index in drafts.indices { drafts[index].result = nil }
      absorbed = drafts.count
    } else {
      for (offset, result) in results.enumerated() { drafts[absorbed + offset].result = result }
    }
  }

  /// Records an optimistic change of the value.
  ///
  /// - Parameters:
  ///   - id: The number of the update.
  ///   - change: The change.
  ///   - old: The value before it.
  ///   - result: The value after it.
  mutating func draft(_ id: UInt64, _ change: Change, of old: Weighed, result: Weighed) {
    version += 1
    endFetch()
    if drafts.isEmpty { values = [old] }
    drafts.append(Draft(id: id, change: change, result: result))
  }

  /// Records an optimistic update that begins without a value.
  mutating func beginWithoutValue(_ id: UInt64, _ change: Change) {
    var draft = Draft(id: id, change: change, result: nil)
    draft.isOvertaken = true
    drafts.append(draft)
  }

  /// Ends an optimistic update that has succeeded.
  ///
  /// - Parameters:
  ///   - id: The number of the update.
  ///   - number: The number of this confirmation, if a flight is running, whose result can lack the change.
  /// - Returns: The consequence.
  mutating func confirm(_ id: UInt64, duringFetch number: UInt64?) -> Confirmation {
    if displaced.remove(id) != nil { return Confirmation(refreshes: true) }
    guard let index = drafts.firstIndex(where: { $0.id == id }) else { return Confirmation() }
    version += 1
    drafts[index].isConfirmed = true
    drafts[index].lateNumber = number
    let refreshes = drafts[index].isOvertaken
    guard !values.isEmpty else {
      _ = dropConfirmed()
      return Confirmation(refreshes: true)
    }
    guard index < absorbed else {
      return Confirmation(changesBase: absorbConfirmed(), refreshes: refreshes)
    }
    resolve(index, isKept: true)
    if number != nil { late.append(drafts[index]) }
    retired.append(([], [drafts.remove(at: index)]))
    _ = absorbConfirmed()
    return Confirmation(changesBase: true, refreshes: refreshes)
  }

  /// Ends an optimistic update that has failed, or returns the changes to reapply first.
  mutating func revert(_ id: UInt64) -> Reversal {
    if displaced.remove(id) != nil { return .nothing }
    guard let index = drafts.firstIndex(where: { $0.id == id }) else { return .nothing }
    guard !values.isEmpty else {
      version += 1
      retired.append(([], [drafts.remove(at: index)]))
      return dropConfirmed() ? .refreshes : .nothing
    }
    let first = max(index + 1, absorbed)
    let changes = drafts[first...].map(\.change)
    let below: Weighed?
    if index < absorbed {
      // The last value that does not contain the draft.
      below = values[values.count - 1 - (1 << index)]
    } else {
      below = index > absorbed ? drafts[index - 1].result : values.last
    }
    guard let below else { return .nothing }
    return .reapplies(to: below, changes: changes, version: version)
  }

  /// Removes a draft whose update has failed.
  ///
  /// - Parameters:
  ///   - id: The number of the update.
  ///   - below: The value below it, with its cost if it is now the one in memory.
  ///   - results: The results of the drafts above it without it.
  ///   - version: The version that they were computed from.
  /// - Returns: The consequence; `nil` if the results were computed from another version.
  mutating func remove(
    _ id: UInt64,
    below: Weighed,
    results: [Weighed],
    version: UInt64
  ) -> Removal? {
    guard version == self.version, let index = drafts.firstIndex(where: { $0.id == id }) else {
      return nil
    }
    self.version += 1
    retired.append((values, drafts))
    let isAbsorbed = index < absorbed
    if isAbsorbed {
      resolve(index, isKept: false)
      values[values.count - 1] = below
    } else if index == absorbed {
      values[values.count - 1] = below
    } else {
      drafts[index - 1].result = below
    }
    drafts.remove(at: index)
    let first = max(index, absorbed)
    for (offset, result) in results.enumerated() { drafts[first + offset].result = result }
    let value = (results.last ?? below).value
    return Removal(value: value, changesBase: absorbConfirmed(), refreshes: isAbsorbed)
  }

  /// Keeps the values with or without a draft that is part of them.
  private mutating func resolve(_ index: Int, isKept: Bool) {
    let kept = values.indices.filter { ($0 >> index & 1 == 1) == isKept }
    retired.append((values, []))
    values = kept.map { values[$0] }
    absorbed -= 1
  }

  /// Makes the confirmed drafts that have no other draft below them the confirmed value.
  ///
  /// - Returns: Whether there were any.
  private mutating func absorbConfirmed() -> Bool {
    var isChanged = false
    while absorbed == 0, let first = drafts.first, first.isConfirmed, let result = first.result {
      retired.append((values, [first]))
      values = [result]
      if first.lateNumber != nil { late.append(first) }
      drafts.removeFirst()
      isChanged = true
    }
    if drafts.isEmpty {
      retired.append((values, []))
      values = []
    }
    return isChanged
  }

  /// Removes the confirmed drafts that have no other draft below them, without a value.
  ///
  /// - Returns: Whether there were any.
  private mutating func dropConfirmed() -> Bool {
    var isChanged = false
    while let first = drafts.first, first.isConfirmed {
      if first.lateNumber != nil { late.append(first) }
      retired.append(([], [drafts.removeFirst()]))
      isChanged = true
    }
    return isChanged
  }
}
