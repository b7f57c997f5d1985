// @unchecked Sendable: constants, and shards behind their locks. `unsafeDowncast` replaces casts whose proof is
// that only a cache makes its flights and their outcomes, and always with its own types of keys and values. The trust
// in copies is read at every hit without reference counting: the layer of the cache keeps it.

/// The cache behind a multiplexer or a map: the table of keys and values on top of ``CacheEngine``.
///
/// The code that every request runs is `@inlinable`, so that it is specialized for the types of the cache.
@usableFromInline
@safe
final class KeyedCache<Key: Hashable & Sendable, Value: Sendable>: CacheEngine, @unchecked Sendable
{
  @usableFromInline typealias BulkFetch =
    @concurrent @Sendable ([Key]) async throws -> BulkValues<Key, Value>

  @usableFromInline let shards: Shards<Shard<Key, Value>>
  @usableFromInline let hasher = KeyHasher()
  /// The cost of a value, if costs differ.
  @usableFromInline let cost: (@Sendable (Value) -> Int)?
  @usableFromInline let storage: StoredLayer<Key, Value>?
  /// The shared tier, if the cacher is one.
  @usableFromInline let shared: SharedLayer<Key, Value>?
  /// Whether copies of the shared tier are used, if there is one; not retained, since the layer keeps it.
  @usableFromInline let seenTrust: Unmanaged<SeenTrust>?
  /// Returns the tags of a key, if keys have tags.
  @usableFromInline let tagging: (@Sendable (Key) -> [CacheTag])?
  /// The tags of values, if values have tags.
  @usableFromInline let valueTags: ValueTags<Key, Value>?
  /// Fetches several keys at once, if there is such a fetch.
  @usableFromInline let bulkFetch: BulkFetch?
  /// The changes during calls of that fetch, which can return the values of other keys; `nil` if these are not kept.
  @usableFromInline let recentChanges: RecentChanges<Key>?

  @inlinable
  init(
    id: String?,
    type: any Any.Type,
    namesKeys: Bool,
    policy: CachePolicy,
    capacity: CacheCapacity<Value> = .unbounded,
    storage: StoredLayer<Key, Value>? = nil,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
    valueTagging: (@Sendable (Key, Value) -> [CacheTag])? = nil,
    clock: any Clock<Duration>,
    bulkFetch: BulkFetch? = nil,
    batching: BatchWindow.Rules? = nil,
    fetch: @escaping Operations.Fetch
  ) {
    capacity.validate()
    let shardCount = namesKeys ? capacity.shardCount : 1
    let limit = capacity.limit
    var rest = limit.map { $0 % shardCount } ?? 0
    shards = Shards(count: shardCount) {
      rest -= 1
      return Shard(
        limit: limit.map { $0 / shardCount + (rest >= 0 ? 1 : 0) },
        timeToIdle: policy.timeToIdle.map { Nanoseconds(saturating: $0) },
        hasTags: tagging != nil || valueTagging != nil,
        pendingWrites: storage?.pendingWrites(isBounded: limit != nil)
      )
    }
    if case .cost(_, let cost) = capacity { self.cost = cost } else { cost = nil }
    self.storage = storage
    shared = storage?.shared
    unsafe seenTrust = (storage?.shared?.seenTrust).map { unsafe Unmanaged.passUnretained($0) }
    self.tagging = tagging
    valueTags = valueTagging.map { ValueTags($0, storage) }
    self.bulkFetch = bulkFetch
    // Values of a shared tier need leases.
    recentChanges = bulkFetch != nil && storage?.shared == nil ? RecentChanges() : nil
    super.init(
      source: Flight.Source(
        id: id,
        type: type,
        namesKeys: namesKeys,
        delaysFlights: batching?.delaysFlights ?? false,
        limit: policy.maximumConcurrentFetches.map {
          FetchLimit(
            $0,
            maximumWaiting: policy.maximumWaitingFetches,
            isBeforeLeases: storage?.shared != nil
          )
        }
      ),
      policy: policy,
      batching: batching,
      clock: clock,
      operations: Self.operations(
        fetch,
        bulkFetch,
        hasCacher: storage != nil,
        isSpecial: storage != nil || recentChanges != nil || valueTagging != nil
          || policy.maximumConcurrentFetches != nil
      )
    )
    if shared != nil { listen() }
  }

  /// Returns the closures by which the engine calls this class; they are called with caches of this type only.
  @inlinable
  static func operations(
    _ fetch: @escaping Operations.Fetch,
    _ bulkFetch: BulkFetch?,
    hasCacher: Bool,
    isSpecial: Bool
  ) -> Operations {
    var launchTogether: (@Sendable (CacheEngine, [Flight]) -> Void)?
    if let bulkFetch {
      launchTogether = { engine, flights in
        let cache = unsafe unsafeDowncast(engine, to: KeyedCache.self)
        cache.launchTogether(flights, with: bulkFetch)
      }
    }
    var work: (@concurrent @Sendable (CacheEngine, Flight) async -> Void)?
    if isSpecial {
      work = { engine, flight in
        let cache = unsafe unsafeDowncast(engine, to: KeyedCache.self)
        await cache.work(for: flight)
      }
    }
    return Operations(
      fetch: fetch,
      finish: { engine, flight, outcome in
        unsafe unsafeDowncast(engine, to: KeyedCache.self).finish(flight, with: outcome)
      },
      launchTogether: launchTogether,
      hasCacher: hasCacher,
      work: work
    )
  }

  /// Returns the key of one of this cache's flights.
  @inlinable
  static func key(of flight: Flight) -> Key {
    unsafe unsafeDowncast(flight, to: KeyFlight<Key>.self).key
  }

  /// Returns one of this cache's outcomes with its value.
  @inlinable
  static func valued(_ outcome: Outcome) -> ValueOutcome<Value> {
    unsafe unsafeDowncast(outcome, to: ValueOutcome<Value>.self)
  }

  @inlinable
  func key(of flight: Flight) -> Key { Self.key(of: flight) }

  @inlinable
  func valued(_ outcome: Outcome) -> ValueOutcome<Value> { Self.valued(outcome) }

  /// Returns the cost of a value, limited so that two costs can be added without overflow.
  @inlinable
  func cost(of value: Value) -> Int {
    guard let cost else { return 1 }
    return min(max(0, cost(value)), .max / 4)
  }

  var currentStatistics: CacheStatistics {
    var sum = CacheStatistics()
    shards.withEachLock { sum = sum + $0.statistics }
    sum.abandoned = abandoned.current
    if let limit = source.limit { (sum.running, sum.waiting) = limit.counts }
    return sum
  }

  // MARK: - Cacher

  override var fetchStart: FetchStart {
    storage?.fetchStart ?? valueTags?.fetchStart ?? FetchStart()
  }

  /// Does the work of a flight of one key, and ends it.
  @inlinable
  func work(for flight: Flight) async {
    let fetch: Fetch = { [self] flights, _ in [try await outcome(of: flights[0])] }
    if storage != nil {
      // Under a limit, it departs when it has a place, or when its stored copy is the answer.
      if source.delaysFlights, source.limit == nil, depart([flight], isBulk: false).isEmpty {
        return
      }
      await fetchWithCacher([flight], scope: flight, by: fetch)
    } else {
      await self.fetch([flight], in: nil, by: fetch)
    }
  }

  @inlinable
  func outcome(of flight: Flight) async throws -> Outcome {
    guard let bulkFetch, recentChanges != nil else {
      return try await attempts(of: flight, operations.fetch)
    }
    return try await attempts(of: flight) { [self] flight, _ in
      let values = try await fetchValues(of: [key(of: flight)], for: flight, by: bulkFetch)
      return Self.outcome(of: flight, in: values)
    }
  }

  @usableFromInline
  override func scheduleWriting() {
    storage?.enqueue(.writing) { [self] in _ = await synchronize(flushing: false) }
  }

  @usableFromInline
  override func scheduleChanges() {
    if shared != nil { return sendChanges() }
    storage?.writeBehind?.noteChange(in: self) { makeWriting() }
  }

  // MARK: - Flights

  /// Returns a stale value for the callers of a flight after the soft timeout; the flight continues.
  override func softAnswer(to flight: Flight) -> Outcome? {
    let now = time.now()
    let readCopy = flight.readCopy.map(valued).flatMap { copy in
      isCleared(copy, of: key(of: flight), at: now) ? nil : copy
    }
    return shards.withLock(hash: flight.hash) { shard -> Outcome? in
      guard let index = shard.keys.index(of: key(of: flight), hash: flight.hash),
        shard[index].state.running === flight, let copy = shard.copy(index) ?? readCopy,
        copy.allowsRenewal(within: .max, at: now)
      else { return nil }
      shard[index].state.keepRunning()
      let answer = ValueOutcome(copy.value)
      answer.storedAt = copy.storedAt
      answer.source = shard.hasValue(index) ? .memory : .cacher
      answer.isStale = true
      return answer
    }
  }

  /// Counts a fetch that is about to begin, or no longer counts one that will not begin.
  @usableFromInline
  override func countFetch(_ flight: Flight, _ count: Int) {
    shards.withLock(hash: flight.hash) { $0.statistics.fetches &+= count }
  }

  /// Counts the time that a fetch has taken.
  @usableFromInline
  func countTime(of flight: Flight) {
    shards.withLock(hash: flight.hash) { $0.countTime(of: flight) }
  }

  /// Cancels a flight that no caller waits for, unless it continues for another reason.
  override func abandon(_ flight: Flight) {
    change(flight.hash, at: .min) { abandon(flight, &$0, &$1) }
  }

  /// Returns whether a flight is cancelled because no caller waits for it: by the policy, or because it waits for a place.
  @usableFromInline
  func isCancelled(withoutCallers flight: Flight) -> Bool {
    policy.whenUnobserved == .cancel || source.limit?.withdraw(flight) == true
  }

  func abandon(
    _ flight: Flight,
    _ shard: inout Shard<Key, Value>,
    _ transaction: inout Transaction
  ) {
    // Another caller can have joined since.
    guard flight.callerCount == 0, !flight.isFinished else { return }
    guard let index = shard.keys.index(of: key(of: flight), hash: flight.hash),
      shard[index].state.running === flight || shard[index].state.queued === flight
    else {
      if isCancelled(withoutCallers: flight) { transaction.effects.cancel(flight) }
      return
    }
    guard shard[index].state.running === flight else { return }
    // Live subscriptions observe all flights of their key.
    if shard[index].state.isInBackground || shard.isLive(index) {
      source.limit?.updateCallers(of: flight)
      return
    }
    guard isCancelled(withoutCallers: flight) else { return }
    if let queued = shard[index].state.queued, queued.callerCount == 0 {
      transaction.effects.release(queued)
      shard[index].state.dequeue()
    }
    let next = shard[index].state.giveUp(hasValue: shard.hasValue(index))
    if shard.hasEdits { shard.endFetch(index, &transaction.effects) }
    transaction.effects.cancel(flight)
    end(index, next: next, &shard, &transaction)
  }
}

extension Shard {
  /// Counts the time that a fetch has taken.
  @inlinable
  mutating func countTime(of flight: Flight) {
    guard !flight.isCancelled else { return }
    statistics.fetchTime += flight.attempt.duration
    statistics.longestFetch = max(statistics.longestFetch, flight.attempt.duration)
  }
}
