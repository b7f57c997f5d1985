internal import Synchronization

/// The cacher behind a multiplexer or a map.
///
/// Writes and removals are done one after another in one queue, so that a write that began before a removal
/// cannot undo it. Reads do not wait for them.
@usableFromInline
final class StoredLayer<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  let cacher: any Cacher<Value>
  /// The cacher, if it reads several entries with one call.
  let batchReader: (any BatchReadingCacher<Value>)?
  /// The shared tier, if the cacher is one.
  @usableFromInline let shared: SharedLayer<Key, Value>?
  private let names: Names
  /// Whether stored copies are read before anything is fetched.
  private let isReadFirst: Bool
  let calls: CacherCircuitBreaker
  /// The timer of changes that are written without a call of `flush`, if they are.
  let writeBehind: WriteBehindTimer?
  let queue = SerialQueue()
  private let enqueued = Locked<Set<Reason>>([])
  /// Whether entries were removed by their keys, which can leave bytes in the cacher until the next flush.
  private let hasRemains = Atomic<Bool>(false)
  /// The values that had left memory and could not be written, until a flush reports them.
  private let losses = Locked<[String: any Error]>([:])
  /// The identity of this cache among the caches with an equal cacher.
  private let ownID = UniqueID.next()
  /// The removals and marks of all of them.
  let ledger: CacherLedger
  /// The cacher, if it records marks.
  private let marker: (any MarkingCacher<Value>)?
  /// The marks that are to be written to the cacher, with their orders.
  private let unwrittenMarks = Locked<[CacheMark: UInt64]>([:])
  /// The number of calls whose removals were executed although they failed, and the last error.
  private let executed = Locked<(count: UInt64, error: (any Error)?)>((0, nil))
  private let lastGeneration = Locked<CacheGeneration?>(CacheGeneration())

  /// Creates the storage of a map.
  ///
  /// - Parameters:
  ///   - cacher: The cacher.
  ///   - id: The id of the map, which is the namespace of its entries; `nil` if it has the whole cacher.
  ///   - policy: The policy of the map.
  ///   - clock: The clock of the map.
  ///   - text: Returns the text of a key: equal for equal keys, and for no others.
  @usableFromInline
  convenience init(
    cacher: any Cacher<Value>,
    id: String?,
    policy: CachePolicy,
    clock: any Clock<Duration>,
    text: @escaping @Sendable (Key) -> String
  ) {
    let prefix = StoredNames.prefix(ofID: id)
    let names = Names(prefix: prefix) { StoredNames.name(of: text($0), prefix: prefix) }
    self.init(cacher, names, policy, clock: clock)
  }

  /// Creates the storage of a multiplexer.
  @usableFromInline
  convenience init(
    cacher: any Cacher<Value>,
    onlyName: String,
    policy: CachePolicy,
    clock: any Clock<Duration>
  ) {
    let name = StoredNames.name(of: StoredNames.text(of: onlyName), prefix: nil)
    self.init(cacher, Names(only: name) { _ in name }, policy, clock: clock)
  }

  /// Creates the storage of a value whose key in the cacher is given as it is.
  ///
  /// - Parameters:
  ///   - cacher: The cacher.
  ///   - name: The key.
  ///   - policy: The policy of the cache.
  ///   - clock: The clock of the cache.
  convenience init(
    cacher: any Cacher<Value>,
    exactName name: String,
    policy: CachePolicy,
    clock: any Clock<Duration>
  ) {
    self.init(cacher, Names(only: name) { _ in name }, policy, clock: clock)
  }

  private init(
    _ cacher: any Cacher<Value>,
    _ names: Names,
    _ policy: CachePolicy,
    clock: any Clock<Duration>
  ) {
    self.cacher = cacher
    self.names = names
    isReadFirst = policy.cacherRead == .beforeFetch
    ledger = CacherLedger.of(cacher)
    marker = cacher as? any MarkingCacher<Value>
    batchReader = cacher as? any BatchReadingCacher<Value>
    shared = (cacher as? any SharedCacher<Value>).map { SharedLayer($0) }
    calls = CacherCircuitBreaker(timeout: policy.storageTimeout, clock: clock)
    writeBehind = policy.writeBehind.map { WriteBehindTimer(delay: $0, clock: clock) }
  }

  /// The names of keys in the cacher; other caches can have entries in it.
  private struct Names: Sendable {
    /// The prefix of all names, if there is one.
    var prefix: String?
    /// The only name, for a single key.
    var only: String?
    let make: @Sendable (Key) -> String

    /// The namespace or the only name of the entries; `nil` if they are all entries of the cacher.
    var part: String? { only ?? prefix }
  }

  /// The only name, for a single key.
  var onlyName: String? { names.only }

  /// Returns the name of a key in the cacher.
  @usableFromInline
  func name(of key: Key) -> String {
    names.make(key)
  }

  /// Returns the changes of one shard that are still to be written: none so far.
  @usableFromInline
  func pendingWrites(isBounded: Bool) -> PendingWrites<Key, Value> {
    PendingWrites(
      isReadFirst: isReadFirst,
      isShared: shared != nil,
      onlyName: onlyName,
      isBounded: isBounded
    )
  }

  /// Removes every entry that can be one of this storage's.
  func removeAllEntries() async throws {
    if let only = names.only {
      try await cacher.removeEntries(forKeys: [only])
    } else if let prefix = names.prefix {
      try await cacher.removeEntries(withPrefix: prefix)
    } else {
      try await cacher.removeAllEntries()
    }
  }

  /// The generation of the cacher, if it counts removals.
  ///
  /// While the cacher is not read because it has taken too long, this is the last known generation. A removal during
  /// that time can prevent the write of a later value, but no earlier value is written after it.
  var generation: CacheGeneration? {
    guard !calls.isPaused else { return lastGeneration.withLock { $0 } }
    let generation = cacher.generation
    lastGeneration.withLock { $0 = generation }
    return generation
  }

  /// The start of a fetch that begins now.
  @usableFromInline var fetchStart: FetchStart {
    FetchStart(generation: generation, order: ledger.marks.withLock { $0.lastOrder })
  }

  /// Returns the start of a value that the shared tier has with the token of a version: it changes with the entry.
  func fetchStart(since token: UInt64) -> FetchStart {
    var start = fetchStart
    let marks = start.generation?.marks ?? 0
    start.generation?.marks = min(marks, token)
    return start
  }

  private var owner: CacherLedger.Owner {
    CacherLedger.Owner(id: ownID, part: names.part)
  }

  /// Performs a removal, and records it as one of this cache.
  ///
  /// - Parameters:
  ///   - count: The number of removals that the cacher counts.
  ///   - operation: The removal.
  /// - Throws: The error of the removal.
  func remove(
    count: Int,
    _ operation: @escaping @concurrent @Sendable () async throws -> Void
  ) async throws {
    guard generation != nil else { return try await operation() }
    try await ledger.perform(count: count, by: owner) {
      [self] in
      generation
    } _: {
      try await operation()
    }
  }

  /// Returns whether a removal that has failed was executed, and is not repeated, and records that.
  func takesAsDone(_ error: any Error) -> Bool {
    guard (error as? any ExecutedRemoval)?.isExecuted == true else { return false }
    executed.withLock { $0 = ($0.count + 1, error) }
    return true
  }

  /// Performs the removals of a clear, which another call can have begun for it.
  ///
  /// - Throws: The error of a removal that has failed meanwhile, although it was executed.
  func clearing(_ operation: () async throws -> Void) async throws {
    let before = executed.withLock { $0.count }
    try await operation()
    let (count, error) = executed.withLock { $0 }
    if count != before, let error { throw error }
  }

  /// Returns the generation of a value that is to be written, past removals and marks since then that do not concern it.
  ///
  /// - Parameters:
  ///   - start: The start of the fetch of the value.
  ///   - present: The current generation. Removals of another epoch are not skipped.
  /// - Returns: The generation.
  func generation(after start: FetchStart, at present: CacheGeneration?) -> CacheGeneration? {
    guard let generation = start.generation else { return nil }
    let skipped = ledger.skipped(by: generation, for: owner, since: start.order)
    return skipped.epoch == present?.epoch ? skipped : generation
  }

  /// Returns a generation past the marks that have been written since, as far as they are older than a value.
  func generation(
    _ generation: CacheGeneration?,
    pastMarksBefore start: FetchStart,
    at present: CacheGeneration?
  ) -> CacheGeneration? {
    guard let generation, let present else { return generation }
    let skipped = ledger.marks.withLock { $0.skipped(by: generation, since: start.order) }
    return skipped.epoch == present.epoch ? skipped : generation
  }

  // MARK: - Marks

  /// Whether the cacher records marks.
  var recordsMarks: Bool { marker != nil }

  /// The mark of a refresh of all values.
  var completeRefresh: CacheMark {
    names.only.map { .refreshedKey($0) } ?? .refreshedPrefix(names.prefix ?? "")
  }

  /// Returns the marks of a refresh or a clear of tags.
  func marks(of tags: Set<CacheTag>, areCleared: Bool) -> [CacheMark] {
    let prefix = names.prefix ?? ""
    return tags.map { tag in
      areCleared ? .clearedTag(tag, prefix: prefix) : .refreshedTag(tag, prefix: prefix)
    }
  }

  /// Notes a mark.
  ///
  /// - Returns: The time up to which stored copies are affected, and whether the mark has to be written to the cacher.
  func note(_ mark: CacheMark) -> (time: Duration, isToBeWritten: Bool) {
    let (order, time) = ledger.note(mark)
    guard marker != nil else { return (time, false) }
    unwrittenMarks.withLock { marks in
      marks[mark] = order
      // Many refreshes are written as one of all values.
      if marks.count > 1024 {
        marks = marks.filter { if case .clearedTag = $0.key { true } else { false } }
        marks[.refreshedPrefix(names.prefix ?? "")] = order
      }
    }
    return (time, true)
  }

  /// Records that entries were removed by their keys.
  func recordRemains() { hasRemains.store(true, ordering: .relaxed) }

  /// Removes the remains of removed entries from the cacher.
  ///
  /// - Parameter isComplete: Whether everything was removed, so that the remains of older entries are removed, too.
  /// - Throws: The error because of which bytes can remain.
  func erase(isComplete: Bool) async throws {
    guard let marker, isComplete || hasRemains.exchange(false, ordering: .relaxed) else { return }
    do {
      try await calls.run(.removal) { try await marker.erase(isComplete: isComplete) }
    } catch {
      hasRemains.store(true, ordering: .relaxed)
      throw error
    }
  }

  /// Writes the marks that the cacher does not have.
  func writeMarks() async throws {
    guard let marker else { return }
    let marks = unwrittenMarks.withLock { marks in
      let taken = marks
      marks = [:]
      return taken
    }
    guard !marks.isEmpty else { return }
    let sorted = marks.sorted { $0.value < $1.value }
    do {
      let generation = try await calls.run(.removal) { try await marker.note(sorted.map(\.key)) }
      ledger.marks.withLock { $0.noteWritten(sorted.map(\.value), generation) }
    } catch {
      unwrittenMarks.withLock { $0.merge(marks) { newer, _ in newer } }
      throw error
    }
  }

  /// The reasons for work in the queue that no caller waits for.
  enum Reason: Hashable, Sendable {
    /// Removals, and the write of the values that have left memory.
    case writing
    /// All changes for a shared tier.
    case sending
  }

  /// Enqueues work, unless some for this reason is enqueued that has not begun.
  func enqueue(_ reason: Reason, _ work: @escaping @concurrent @Sendable () async -> Void) {
    guard enqueued.withLock({ $0.insert(reason).inserted }) else { return }
    queue.add { [self] in
      enqueued.withLock { _ = $0.remove(reason) }
      await work()
    }
  }

  /// Records a value that has left memory and could not be written.
  ///
  /// The number of records is limited, because a flush that reports them might never be called.
  func recordLoss(_ name: String, _ error: any Error) {
    losses.release { losses -> (any Error)? in
      guard losses.count < 4096 || losses[name] != nil else { return nil }
      return losses.updateValue(error, forKey: name)
    }
  }

  /// Removes the records of values, because newer ones were written.
  func forgetLosses(_ names: some Sequence<String>) {
    losses.release { losses in
      losses.isEmpty ? [] : names.map { losses.removeValue(forKey: $0) }
    }
  }

  /// Returns the values that could not be written since the last call.
  func takeLosses() -> [String: any Error] {
    losses.withLock { losses in
      let taken = losses
      losses = [:]
      return taken
    }
  }
}

extension StoredLayer: StoredCopies {
  var id: CacherID { CacherID(cacher, part: names.part, owner: self) }

  var isShared: Bool { shared != nil }

  func removeAll() async throws {
    try await remove(count: 1) {
      try await self.calls.run(.removal) { try await self.removeAllEntries() }
    }
    try await erase(isComplete: true)
  }
}
