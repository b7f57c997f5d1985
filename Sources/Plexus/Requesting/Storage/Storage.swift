internal import Synchronization

/// The cacher behind a multiplexer or a map.
///
/// Writes and removals are done one after another in one queue, so that a write that began before a removal
/// cannot undo it. Reads do not wait for them.
@usableFromInline
final class Storage<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  let cacher: any Cacher<Value>
  /// The cacher, if it reads several entries with one call.
  let batchReader: (any BatchReadingCacher<Value>)?
  /// The shared tier, if the cacher is one.
  @usableFromInline let link: SharedLink<Key, Value>?
  /// The only name, for a single key; other caches can have entries in the cacher.
  @usableFromInline let onlyName: String?
  /// The prefix of all names; other caches can have entries in the cacher.
  let prefix: String?
  let calls: CacherCircuitBreaker
  private let writeBehind: WriteBehind?
  let queue = SerialQueue()
  private let makeName: @Sendable (Key) -> String
  private let isWriting = Atomic<Bool>(false)
  /// Whether entries were removed by their keys, which can leave bytes in the cacher until the next flush.
  private let hasRemains = Atomic<Bool>(false)
  /// The values that had left memory and could not be written, until a flush reports them.
  private let losses = Locked<[String: any Error]>([:])
  /// The identity of this cache among the caches with an equal cacher.
  private let ownID = UniqueID.next()
  /// The removals and marks of all of them.
  let ledger: RemovalLedger
  /// The cacher, if it records marks.
  private let marker: (any MarkingCacher<Value>)?
  /// The marks that are to be written to the cacher, with their orders.
  private let unwrittenMarks = Locked<[CacheMark: UInt64]>([:])
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
  init(
    cacher: any Cacher<Value>,
    id: String?,
    policy: CachePolicy,
    clock: any Clock<Duration>,
    text: @escaping @Sendable (Key) -> String
  ) {
    self.cacher = cacher
    ledger = RemovalLedger.of(cacher)
    marker = cacher as? any MarkingCacher<Value>
    batchReader = cacher as? any BatchReadingCacher<Value>
    link = (cacher as? any SharedCacher<Value>).map { SharedLink($0) }
    let prefix = StoredNames.prefix(ofID: id)
    self.prefix = prefix
    onlyName = nil
    calls = CacherCircuitBreaker(timeout: policy.storageTimeout, clock: clock)
    writeBehind = policy.writeBehind.map { WriteBehind(delay: $0, clock: clock) }
    makeName = { StoredNames.name(of: text($0), prefix: prefix) }
  }

  /// Creates the storage of a multiplexer.
  @usableFromInline
  init(
    cacher: any Cacher<Value>,
    onlyName: String,
    policy: CachePolicy,
    clock: any Clock<Duration>
  ) {
    self.cacher = cacher
    ledger = RemovalLedger.of(cacher)
    marker = cacher as? any MarkingCacher<Value>
    batchReader = nil
    link = (cacher as? any SharedCacher<Value>).map { SharedLink($0) }
    prefix = nil
    let name = StoredNames.name(of: StoredNames.text(of: onlyName), prefix: nil)
    self.onlyName = name
    calls = CacherCircuitBreaker(timeout: policy.storageTimeout, clock: clock)
    writeBehind = policy.writeBehind.map { WriteBehind(delay: $0, clock: clock) }
    makeName = { _ in name }
  }

  /// Removes every entry that can be one of this storage's.
  func removeAllEntries() async throws {
    if let onlyName {
      try await cacher.removeEntries(forKeys: [onlyName])
    } else if let prefix {
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
    FetchStart(generation: generation, order: ledger.order)
  }

  private var owner: RemovalLedger.Owner {
    RemovalLedger.Owner(id: ownID, part: part)
  }

  /// The namespace or the only name of the entries; `nil` if they are all entries of the cacher.
  private var part: String? { onlyName ?? prefix }

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

  // MARK: - Marks

  /// Notes that a value has changed at its origin.
  ///
  /// - Returns: The time up to which stored copies are outdated.
  @usableFromInline
  func noteRefresh(of name: String, in cache: KeyedCache<Key, Value>) -> Duration {
    note(.refreshedKey(name), in: cache)
  }

  /// Notes that all values have changed at their origin.
  ///
  /// - Returns: The time up to which stored copies are outdated.
  @usableFromInline
  func noteCompleteRefresh(in cache: KeyedCache<Key, Value>) -> Duration {
    note(onlyName.map { .refreshedKey($0) } ?? .refreshedPrefix(prefix ?? ""), in: cache)
  }

  /// Notes that the values with some tags have changed at their origin, or were cleared.
  func note(tags: Set<CacheTag>, areCleared: Bool, in cache: KeyedCache<Key, Value>) {
    let prefix = prefix ?? ""
    for tag in tags {
      let mark =
        areCleared
        ? CacheMark.clearedTag(tag, prefix: prefix) : .refreshedTag(tag, prefix: prefix)
      _ = note(mark, in: cache)
    }
  }

  private func note(_ mark: CacheMark, in cache: KeyedCache<Key, Value>) -> Duration {
    let (order, time) = ledger.note(mark)
    guard marker != nil else { return time }
    unwrittenMarks.withLock { marks in
      marks[mark] = order
      // Many refreshes are written as one of all values.
      if marks.count > 1024 {
        marks = marks.filter { if case .clearedTag = $0.key { true } else { false } }
        marks[.refreshedPrefix(prefix ?? "")] = order
      }
    }
    scheduleWriting(in: cache)
    return time
  }

  /// Records that entries were removed by their keys.
  func noteRemains() { hasRemains.store(true, ordering: .relaxed) }

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
      ledger.noteWritten(sorted.map(\.value), generation)
    } catch {
      unwrittenMarks.withLock { $0.merge(marks) { newer, _ in newer } }
      throw error
    }
  }

  /// Returns the name of a key in the cacher.
  @usableFromInline
  func name(of key: Key) -> String {
    makeName(key)
  }

  /// Enqueues the write of the values that have left memory, unless it is enqueued already.
  @usableFromInline
  func scheduleWriting(in cache: KeyedCache<Key, Value>) {
    guard !isWriting.exchange(true, ordering: .acquiringAndReleasing) else { return }
    queue.add { [self] in
      isWriting.store(false, ordering: .releasing)
      _ = await cache.synchronize(self, flushing: false)
    }
  }

  /// Whether changes are written without a call of `flush`.
  @usableFromInline var writesBehind: Bool { writeBehind != nil }

  /// Schedules a write of the changes after the delay of the policy.
  @usableFromInline
  func noteChange(in cache: KeyedCache<Key, Value>) {
    writeBehind?.noteChange(in: cache) { write(in: cache) }
  }

  /// Schedules another write of changes that could not be written.
  func noteFailure(in cache: KeyedCache<Key, Value>) {
    writeBehind?.noteFailure(in: cache) { write(in: cache) }
  }

  private func write(
    in cache: KeyedCache<Key, Value>
  ) -> @concurrent @Sendable () async -> Bool? {
    { [self, weak cache] in await cache?.writeBehind(self) }
  }

  /// Records that all changes so far are about to be written.
  func beginFlush() {
    writeBehind?.beginFlush()
  }

  /// Records a value that has left memory and could not be written.
  ///
  /// The number of records is limited, because a flush that reports them might never be called.
  func noteLoss(_ name: String, _ error: any Error) {
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

/// The stored copies of a member of a repository, which can be removed after its release.
protocol StoredCopies: AnyObject, Sendable {
  /// An id that is equal for equal copies, as far as that can be determined.
  var id: CacherID { get }

  /// Whether other processes share them.
  var isShared: Bool { get }

  /// Removes the copies.
  func removeAll() async throws
}

extension Storage: StoredCopies {
  var id: CacherID { CacherID(cacher, part: part, owner: self) }

  var isShared: Bool { link != nil }

  func removeAll() async throws {
    try await remove(count: 1) {
      try await self.calls.run(.removal) { try await self.removeAllEntries() }
    }
    try await erase(isComplete: true)
  }
}
