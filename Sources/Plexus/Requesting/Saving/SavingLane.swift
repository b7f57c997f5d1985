internal import Synchronization

/// The entry of one key of a cacher, which all saved states of that key share.
///
/// Writes are done one after another, also that of a saved state that was released and that of its successor.
final class SavingLane<Value: Sendable>: Sendable {
  let queue = SerialQueue()
  /// The cache through which states are written and removed: it orders the two, and limits the time that they take.
  var cache: KeyedCache<SingleKey, Value> { owner.cache }
  private let owner: CacheOwner<SingleKey, Value>
  private let key: String
  private let ledger: CacherLedger
  private let clears = Atomic<Int>(0)
  private let begun = Atomic<Int>(0)
  private let succeeded = Atomic<Int>(0)
  private let members = Locked<[ObjectIdentifier: Member]>([:])

  /// A weakly held core; an object, because Swift 6.3 crashes when it copies an optional structure with a weak reference.
  private final class Member: Sendable {
    weak let core: SavingCore<Value>?

    init(_ core: SavingCore<Value>) {
      self.core = core
    }
  }

  private init(_ key: String, cacher: any Cacher<Value>, clock: any Clock<Duration>) {
    let policy = CachePolicy()
    let storage = StoredLayer<SingleKey, Value>(
      cacher: cacher,
      exactName: key,
      policy: policy,
      clock: clock
    )
    let cache = KeyedCache<SingleKey, Value>(
      id: key,
      type: SavedState.self,
      namesKeys: false,
      policy: policy,
      storage: storage,
      clock: clock,
      fetch: KeyedCache<SingleKey, Value>.fetch { (_: SingleKey) -> Value in
        throw MultiplexerError.missingKey(key)
      }
    )
    self.key = key
    ledger = storage.ledger
    owner = CacheOwner(cache)
  }

  deinit {
    ledger.lanes.remove(key, ObjectIdentifier(self))
  }

  /// Returns the lane of a key.
  static func of(
    _ key: String,
    in cacher: any Cacher<Value>,
    clock: any Clock<Duration>
  ) -> SavingLane {
    let ledger = CacherLedger.of(cacher)
    if let lane = ledger.lanes.lane(of: key) as? SavingLane { return lane }
    let lane = SavingLane(key, cacher: cacher, clock: clock)
    return ledger.lanes.insert(lane, for: key) as? SavingLane ?? lane
  }

  // MARK: - Saved states

  func add(_ core: SavingCore<Value>) {
    members.withLock { $0[ObjectIdentifier(core)] = Member(core) }
  }

  func remove(_ core: SavingCore<Value>) {
    members.release { $0.removeValue(forKey: ObjectIdentifier(core)) }
  }

  /// The saved states of the key, and released ones whose last write has not ended.
  var cores: [SavingCore<Value>] {
    members.withLock { $0.values.compactMap(\.core) }
  }

  // MARK: - Clears

  /// The number of clears so far: what was changed before one is never written after it.
  var period: Int { clears.load(ordering: .acquiring) }

  // MARK: - Writes

  /// A write begins.
  ///
  /// - Returns: Its number.
  func begin() -> Int {
    begun.add(1, ordering: .acquiringAndReleasing).newValue
  }

  /// The number of writes that have begun.
  var writeCount: Int { begun.load(ordering: .acquiring) }

  /// The number of the newest write that has succeeded.
  var newestWrite: Int { succeeded.load(ordering: .acquiring) }

  /// A write has succeeded.
  func noteSuccess(of number: Int) {
    _ = succeeded.max(number, ordering: .acquiringAndReleasing)
  }

  /// Begins a new period.
  func clear() {
    clears.add(1, ordering: .acquiringAndReleasing)
  }

  /// Writes a state, unless a period has begun since.
  ///
  /// - Parameters:
  ///   - value: The state.
  ///   - period: The period in which it was read.
  /// - Throws: The error of the cacher.
  func write(_ value: Value, of period: Int) async throws {
    cache.store(value, for: SingleKey(), hash: 0)
    // A clear after this look drops the value from the cache, and removes it after the write.
    guard self.period == period else { return cache.invalidate() }
    try await cache.flush()
  }
}

/// The lanes in use of one cacher, by key.
final class SavingLanes: Sendable {
  /// A weakly held lane; an object, because Swift 6.3 crashes when it copies an optional structure with a weak reference.
  private final class Entry: Sendable {
    let id: ObjectIdentifier
    weak let lane: (any AnyObject & Sendable)?

    init(_ lane: any AnyObject & Sendable) {
      id = ObjectIdentifier(lane)
      self.lane = lane
    }
  }

  private let entries = Locked<[String: Entry]>([:])

  init() {}

  /// Returns the lane of a key, if it is in use.
  func lane(of key: String) -> (any AnyObject & Sendable)? {
    entries.withLock { $0[key]?.lane }
  }

  /// Adds a lane, unless the key has one.
  ///
  /// - Returns: The lane of the key.
  func insert(_ lane: any AnyObject & Sendable, for key: String) -> any AnyObject & Sendable {
    entries.withLock { entries in
      if let known = entries[key]?.lane { return known }
      entries[key] = Entry(lane)
      return lane
    }
  }

  /// Removes a lane that is no longer in use.
  func remove(_ key: String, _ id: ObjectIdentifier) {
    entries.withLock { entries in
      if entries[key]?.id == id { entries[key] = nil }
    }
  }
}
