internal import Synchronization

/// The removals from one cacher by all caches of this process, and the marks that they have noted.
///
/// A cacher only counts removals. They are therefore performed one after another, so that each cache can tell its own
/// ones from those of other processes, also when several caches share a cacher and are cleared together.
final class CacherLedger: Sendable {
  private let queue = SerialQueue()
  private let state = Locked(State())
  /// The marks, by which stored copies are judged.
  let marks = Locked(OwnMarksState())
  /// The lanes of saved states, by key.
  let lanes = SavingLanes()
  /// Whether the last removal has taken too long, in which case others do not wait for their turn.
  private let isSlow = Atomic<Bool>(false)
  /// The hash value of the cacher, if it has an identity.
  private let hash: Int?

  private init(hash: Int?) {
    self.hash = hash
  }

  deinit {
    if let hash { Self.removeEntry(ofID: ObjectIdentifier(self), hash: hash) }
  }

  /// Performs a removal after the ones that were requested earlier, and records it.
  ///
  /// - Parameters:
  ///   - count: The number of removals that the cacher counts.
  ///   - owner: The cache that requests it.
  ///   - generation: Returns the present generation of the cacher.
  ///   - operation: The removal.
  /// - Throws: The error of the removal.
  func perform(
    count: Int,
    by owner: Owner,
    generation: @escaping @Sendable () -> CacheGeneration?,
    _ operation: @escaping @concurrent @Sendable () async throws -> Void
  ) async throws {
    let result = Locked<Result<Void, any Error>?>(nil)
    let work: @concurrent @Sendable () async -> Void = { [self] in
      let before = generation()
      do {
        try await operation()
        isSlow.store(false, ordering: .relaxed)
        result.withLock { $0 = .success(()) }
      } catch {
        if case .storageTimedOut = error as? MultiplexerError {
          isSlow.store(true, ordering: .relaxed)
        }
        result.withLock { $0 = .failure(error) }
      }
      guard let before, let after = generation() else { return }
      state.withLock { $0.note(count, by: owner, before: before, after: after) }
    }
    // A removal that a removal of the cacher itself requests would wait for itself.
    if !queue.isCurrent {
      await queue.add { [self] in if !isSlow.load(ordering: .relaxed) { await work() } }.value
    }
    if result.withLock({ $0 == nil }) { await work() }
    try result.withLock { $0 }?.get()
  }

  /// Returns a generation after the removals and marks that followed it and have no effect on the pending values of a
  /// cache.
  ///
  /// - Parameters:
  ///   - generation: The generation of the value.
  ///   - owner: The cache.
  ///   - start: The order of the start of the value's fetch.
  /// - Returns: The generation.
  func skipped(
    by generation: CacheGeneration,
    for owner: Owner,
    since start: UInt64
  ) -> CacheGeneration {
    let skipped = state.withLock { $0.skipped(by: generation, for: owner) }
    return marks.withLock { $0.skipped(by: skipped, since: start) }
  }

  /// Notes a mark, and returns its order and the time up to which stored copies are affected.
  func note(_ mark: CacheMark) -> (order: UInt64, time: Duration) {
    let time = wallClockTime()
    return marks.withLock { $0.note(mark, at: time) }
  }
}

extension CacherLedger {
  private struct Entry: Sendable {
    let cacher: CacherID
    let id: ObjectIdentifier
    weak let ledger: CacherLedger?
  }

  /// The ledgers in use, by the hash values of their cachers, which are compared without the lock.
  private static let entries = Locked<[Int: [Entry]]>([:])

  /// Returns the ledger of a cacher, which all caches with an equal cacher share.
  static func of(_ cacher: any Cacher) -> CacherLedger {
    guard let id = CacherID(cacher) else { return CacherLedger(hash: nil) }
    let hash = id.hashValue
    let new = CacherLedger(hash: hash)
    var compared: [ObjectIdentifier] = []
    while true {
      // `nil` once the new ledger is inserted.
      let candidates = entries.withLock { entries -> [Entry]? in
        let known = entries[hash, default: []]
        guard known.map(\.id) == compared else { return known }
        entries[hash, default: []].append(
          Entry(cacher: id, id: ObjectIdentifier(new), ledger: new)
        )
        return nil
      }
      guard let candidates else { return new }
      for candidate in candidates where candidate.cacher == id {
        if let ledger = candidate.ledger { return ledger }
      }
      compared = candidates.map(\.id)
    }
  }

  private static func removeEntry(ofID id: ObjectIdentifier, hash: Int) {
    entries.release { entries in
      let known = entries[hash, default: []]
      let rest = known.filter { $0.id != id }
      entries[hash] = rest.isEmpty ? nil : rest
      return known
    }
  }
}
