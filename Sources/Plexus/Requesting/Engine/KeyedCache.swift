// @unchecked Sendable: constants, and shards behind their locks. `unsafeDowncast` replaces casts whose proof is
// that only a cache makes its flights and their outcomes, and always with its own types of keys and values. The trust
// in copies is read at every hit without reference counting: the link of the cache keeps it.

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
  @usableFromInline let storage: Storage<Key, Value>?
  /// The shared tier, if the cacher is one.
  @usableFromInline let link: SharedLink<Key, Value>?
  /// Whether copies of the shared tier are used, if there is one; not retained, since the link keeps it.
  @usableFromInline let copyTrust: Unmanaged<CopyTrust>?
  /// Returns the tags of a key, if keys have tags.
  @usableFromInline let tagging: (@Sendable (Key) -> [CacheTag])?
  /// Fetches several keys at once, if there is such a fetch.
  @usableFromInline let bulkFetch: BulkFetch?

  @inlinable
  init(
    id: String?,
    type: any Any.Type,
    namesKeys: Bool,
    policy: CachePolicy,
    capacity: CacheCapacity<Value> = .unbounded,
    storage: Storage<Key, Value>? = nil,
    tagging: (@Sendable (Key) -> [CacheTag])? = nil,
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
        hasTags: tagging != nil,
        pendingWrites: storage.map {
          PendingWrites(
            isReadFirst: policy.cacherRead == .beforeFetch,
            isShared: $0.link != nil,
            onlyName: $0.onlyName,
            isBounded: limit != nil
          )
        }
      )
    }
    if case .cost(_, let cost) = capacity { self.cost = cost } else { cost = nil }
    self.storage = storage
    link = storage?.link
    unsafe copyTrust = (storage?.link?.copyTrust).map { unsafe Unmanaged.passUnretained($0) }
    self.tagging = tagging
    self.bulkFetch = bulkFetch
    // Called with this cache only, which is what the downcasts rely on.
    super.init(
      source: Flight.Source(
        id: id,
        type: type,
        namesKeys: namesKeys,
        delaysFlights: batching?.delaysFlights ?? false
      ),
      policy: policy,
      batching: batching,
      clock: clock,
      operations: Self.operations(fetch: fetch, storage: storage, bulkFetch: bulkFetch)
    )
    if link != nil { listen() }
  }

  /// Returns the closures by which the engine calls this class; they are called with caches of this type only.
  @inlinable
  static func operations(
    fetch: @escaping Operations.Fetch,
    storage: Storage<Key, Value>?,
    bulkFetch: BulkFetch?
  ) -> Operations {
    var readCopy: (@concurrent @Sendable (CacheEngine, Flight) async -> Outcome?)?
    var fetchStart: (@Sendable () -> FetchStart)?
    var scheduleWriting: (@Sendable (CacheEngine) -> Void)?
    var noteChange: (@Sendable (CacheEngine) -> Void)?
    var launchTogether: (@Sendable (CacheEngine, [Flight]) -> Void)?
    var fetchShared: (@concurrent @Sendable (CacheEngine, Flight) async -> Void)?
    if let storage {
      readCopy = { engine, flight in
        let cache = unsafe unsafeDowncast(engine, to: KeyedCache.self)
        return await cache.readCopy(for: flight, from: storage)
      }
      fetchStart = { storage.fetchStart }
      scheduleWriting = { engine in
        storage.scheduleWriting(in: unsafe unsafeDowncast(engine, to: KeyedCache.self))
      }
      if storage.writesBehind {
        noteChange = { engine in
          storage.noteChange(in: unsafe unsafeDowncast(engine, to: KeyedCache.self))
        }
      }
    }
    if let storage, let link = storage.link {
      fetchShared = { engine, flight in
        let cache = unsafe unsafeDowncast(engine, to: KeyedCache.self)
        await cache.fetchShared(flight, by: link, storage)
      }
      noteChange = { unsafe unsafeDowncast($0, to: KeyedCache.self).sendChanges() }
    }
    if let bulkFetch {
      launchTogether = { engine, flights in
        let cache = unsafe unsafeDowncast(engine, to: KeyedCache.self)
        cache.launchTogether(flights, with: bulkFetch)
      }
    }
    return Operations(
      fetch: fetch,
      finish: { engine, flight, outcome in
        unsafe unsafeDowncast(engine, to: KeyedCache.self).finish(flight, with: outcome)
      },
      abandon: { engine, flight in
        unsafe unsafeDowncast(engine, to: KeyedCache.self).abandon(flight)
      },
      countFetch: { engine, flight, count in
        unsafe unsafeDowncast(engine, to: KeyedCache.self).countFetch(flight, count)
      },
      softAnswer: { engine, flight in
        unsafe unsafeDowncast(engine, to: KeyedCache.self).softAnswer(to: flight)
      },
      readCopy: readCopy,
      fetchStart: fetchStart,
      scheduleWriting: scheduleWriting,
      noteChange: noteChange,
      launchTogether: launchTogether,
      fetchShared: fetchShared
    )
  }

  /// Returns the key of one of this cache's flights.
  @inlinable
  func key(of flight: Flight) -> Key {
    unsafe unsafeDowncast(flight, to: KeyFlight<Key>.self).key
  }

  /// Returns one of this cache's outcomes with its value.
  @inlinable
  func valued(_ outcome: Outcome) -> ValueOutcome<Value> {
    unsafe unsafeDowncast(outcome, to: ValueOutcome<Value>.self)
  }

  /// Returns the cost of a value, limited so that two costs can be added without overflow.
  @inlinable
  func cost(of value: Value) -> Int {
    guard let cost else { return 1 }
    return min(max(0, cost(value)), .max / 4)
  }

  @inlinable var currentStatistics: CacheStatistics {
    var sum = CacheStatistics()
    shards.withEachLock { sum = sum + $0.statistics }
    sum.abandoned = abandoned.current
    return sum
  }

  // MARK: - Hits

  /// Returns the value of a key, if it is fresh and satisfies the refresh that the caller requires.
  @inlinable
  func hit(_ key: Key, hash: UInt64, ticket: RefreshTicket) -> Value? {
    let now = time.now()
    guard usesCopies(at: now) else { return nil }
    return shards.withLock(hash: hash) {
      $0.hit(key, hash: hash, ticket: ticket, at: now, refreshAhead: refreshAhead)
    }
  }

  /// Returns the value of a key, fresh or stale.
  @inlinable
  func value(of key: Key, hash: UInt64) -> Value? {
    shards.withLock(hash: hash) { $0.value(of: key, hash: hash) }
  }

  // MARK: - Requests

  /// Answers a request, and waits for a flight if there is no usable value.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - ticket: The newest refresh that the caller requires.
  /// - Returns: The value and its metadata.
  /// - Throws: The error of the fetch; a `CancellationError` if the caller's task is cancelled and
  ///   would have to wait; ``MultiplexerError/recursiveRequest(chain:)``.
  @inlinable
  @inline(__always)
  func settle(
    _ key: Key,
    hash: UInt64,
    ticket: RefreshTicket
  ) async throws -> ValueOutcome<Value> {
    let scope = WaitScope.awaited
    switch admit(key, hash: hash, ticket: ticket, scope: scope) {
    case .answered(let outcome):
      return outcome
    case .failed(let error):
      throw error
    case .waits(let flight, let place):
      let isSoft = ticket.isNone && policy.softTimeout != nil
      return valued(try await wait(for: flight, in: place, scope: scope, isSoft: isSoft))
    }
  }

  /// Answers a request, or begins its wait for a flight.
  ///
  /// This is not a part of the asynchronous function: if inlined there, all its temporary values would be stored in
  /// the frame, of which there is one for each waiting caller.
  @inlinable
  @inline(never)
  func admit(
    _ key: Key,
    hash: UInt64,
    ticket: RefreshTicket,
    scope: WaitNode?
  ) -> Admission {
    var effects = makeEffects()
    let admission = admit(key, hash: hash, ticket: ticket, Caller(scope, at: time.now()), &effects)
    var recursion: MultiplexerError?
    if let scope, case .waits(let flight, let place) = admission {
      // The wait is recorded before the fetch begins, so that a request of the fetch itself completes a cycle.
      recursion = enter(scope, waitingFor: flight, in: place)
    }
    effects.perform(in: self)
    if let recursion { return .failed(recursion) }
    return admission
  }

  /// Answers a request with a value and its metadata.
  @inlinable
  func response(
    _ key: Key,
    hash: UInt64,
    ticket: RefreshTicket
  ) async throws -> Response<Value> {
    let now = time.now()
    let isTrusted = usesCopies(at: now)
    let hit = shards.withLock(hash: hash) { shard -> Response<Value>? in
      guard isTrusted,
        let index = shard.hitIndex(
          key,
          hash: hash,
          ticket: ticket,
          at: now,
          refreshAhead: refreshAhead
        ),
        let value = shard[index].value
      else { return nil }
      return Response(
        value: value,
        source: .memory,
        age: .nanoseconds(age(of: shard[index].state.storedAt, at: now))
      )
    }
    if let hit { return hit }
    let outcome = try await settle(key, hash: hash, ticket: ticket)
    return Response(
      value: outcome.value,
      source: outcome.source,
      age: .nanoseconds(outcome.source == .fetch ? 0 : age(of: outcome.storedAt, at: time.now())),
      isStale: outcome.isStale,
      isRevalidated: outcome.source == .fetch && outcome.isRevalidated,
      error: outcome.error
    )
  }

  /// The properties of a caller, read once even if it requests several keys.
  @usableFromInline
  struct Caller: Sendable {
    /// The fetch or load that it works for.
    @usableFromInline let scope: WaitNode?
    @usableFromInline let priority: PriorityLevel
    @usableFromInline let isCancelled: Bool
    /// Whether flights are launched together with others.
    @usableFromInline let isBulk: Bool
    /// The present time.
    @usableFromInline let now: Nanoseconds

    @inlinable
    init(_ scope: WaitNode?, isBulk: Bool = false, at now: Nanoseconds) {
      self.scope = scope
      self.isBulk = isBulk
      self.now = now
      priority = .current
      isCancelled = Task.isCancelled
    }
  }

  /// The result of a request before it suspends.
  @usableFromInline
  enum Admission: Sendable {
    case answered(ValueOutcome<Value>)
    case failed(any Error)
    case waits(Flight, WaitPlace)
  }

  /// Answers a request, or gives it a place in a flight.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - ticket: The newest refresh that the caller requires.
  ///   - caller: The caller.
  ///   - effects: Receives the work that remains, also if the request fails.
  /// - Returns: The answer, or the flight to wait for.
  @inlinable
  func admit(
    _ key: Key,
    hash: UInt64,
    ticket: RefreshTicket,
    _ caller: Caller,
    _ effects: inout Effects
  ) -> Admission {
    let isOwn = caller.scope.map { isFlight($0, of: key, hash: hash) } ?? false
    let now = caller.now
    let tags = tagging?(key)
    let isTrusted = link == nil || isTrusted()
    return shards.withLock(hash: hash) { shard -> Admission in
      let index = shard.place(of: key, hash: hash, tags: tags)
      let hasValue = shard.hasValue(index)
      if !isTrusted, hasValue, !keepsCopy(from: shard[index].state.storedAt, at: now) {
        shard[index].state.distrust()
      }
      if hasValue { shard.noteUse(index, at: now) }
      switch shard[index].state.decide(
        hasValue: hasValue,
        ticket: ticket,
        at: now,
        staleTime: staleTime,
        refreshAhead: refreshAhead,
        mayWait: !isOwn && !caller.isCancelled
      ) {
      case .fresh:
        shard.statistics.hits &+= 1
        return answer(from: shard, index, isStale: false)
      case .expiring:
        shard.statistics.hits &+= 1
        let answer = answer(from: shard, index, isStale: false)
        _ = begin(&shard, index, caller, ticket, inBackground: true, &effects)
        return answer
      case .stale(let renews):
        shard.statistics.staleHits &+= 1
        let answer = answer(from: shard, index, isStale: true)
        if renews {
          _ = begin(&shard, index, caller, ticket, inBackground: true, &effects)
        }
        return answer
      case .failure:
        return shard.fallBack(index, at: now)
      case .waits(let flight):
        shard.statistics.joins &+= 1
        return .waits(flight, flight.join())
      case .begins:
        shard.statistics.misses &+= 1
        let flight = begin(&shard, index, caller, ticket, inBackground: false, &effects)
        return .waits(flight, .first)
      case .refused:
        shard.statistics.misses &+= 1
        shard.removeIfEmpty(index, &effects)
        return .failed(refusal(isOwn: isOwn, scope: caller.scope))
      }
    }
  }

  /// Returns the value at an index as an answer.
  @inlinable
  func answer(from shard: Shard<Key, Value>, _ index: Int, isStale: Bool) -> Admission {
    // Only an entry with a value is classified as fresh or stale.
    guard let copy = shard.copy(index) else { return .failed(CancellationError()) }
    copy.source = .memory
    copy.isStale = isStale
    if isStale { copy.error = shard[index].state.failure?.error }
    return .answered(copy)
  }

  /// Begins a flight, which is launched once the lock is released.
  ///
  /// Unless it begins in the background, the caller has joined it, in ``WaitPlace/first``.
  @inlinable
  func begin(
    _ shard: inout Shard<Key, Value>,
    _ index: Int,
    _ caller: Caller,
    _ ticket: RefreshTicket,
    inBackground: Bool,
    _ effects: inout Effects
  ) -> Flight {
    let flight = shard.makeFlight(
      index,
      source: source,
      priority: caller.priority,
      hasCaller: !inBackground
    )
    if effects.tellsEvents, shard.hasValue(index), shard[index].state.isExpired(at: caller.now) {
      effects.tell(of: shard.keys.entries[index].key) { .expired(key: $0) }
    }
    flight.inheritsTaskLocals = policy.inheritsTaskLocals && !inBackground
    shard[index].state.begin(flight, inBackground: inBackground)
    shard.launch(
      flight,
      index,
      takesStoredCopy: ticket.isNone,
      isBulk: caller.isBulk,
      &effects
    )
    let key = shard.keys.entries[index].key
    if shard.pauseCount > 0 || key != key {
      // The flight is detached at once: its outcome is for the current callers only. An entry whose key is not equal
      // to itself, such as a NaN, could not be found again.
      _ = shard[index].state.giveUp(hasValue: shard.hasValue(index))
      shard.removeIfEmpty(index, &effects)
    } else {
      shard.publish(index, &effects)
    }
    return flight
  }

  /// Returns whether a fetch or load is the fetch of this key of this cache.
  @inlinable
  func isFlight(_ node: WaitNode, of key: Key, hash: UInt64) -> Bool {
    guard let flight = node as? Flight, flight.source === source, flight.hash == hash else {
      return false
    }
    return self.key(of: flight) == key
  }

  /// Returns a stale value for the callers of a flight after the soft timeout; the flight continues.
  @usableFromInline
  func softAnswer(to flight: Flight) -> Outcome? {
    let now = time.now()
    let answer = shards.withLock(hash: flight.hash) { shard -> Outcome? in
      guard let index = shard.keys.index(of: key(of: flight), hash: flight.hash),
        shard[index].state.running === flight,
        let copy = shard.copy(index) ?? flight.readCopy.map({ valued($0) }),
        copy.allowsRenewal(within: .max, at: now)
      else { return nil }
      shard[index].state.keepRunning()
      let answer = ValueOutcome(copy.value)
      answer.storedAt = copy.storedAt
      answer.source = shard.hasValue(index) ? .memory : .cacher
      answer.isStale = true
      return answer
    }
    return answer
  }

  /// Counts a fetch that is about to begin, or no longer counts one that will not begin.
  @inlinable
  func countFetch(_ flight: Flight, _ count: Int = 1) {
    shards.withLock(hash: flight.hash) { $0.statistics.fetches &+= count }
  }

  /// Counts the time that a fetch has taken.
  @usableFromInline
  func countTime(of flight: Flight) {
    shards.withLock(hash: flight.hash) { $0.countTime(of: flight) }
  }

  /// Cancels a flight that no caller waits for, unless it continues for another reason.
  @inlinable
  func abandon(_ flight: Flight) {
    change(flight.hash, at: .min) { abandon(flight, &$0, &$1) }
  }

  @inlinable
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
      transaction.effects.cancel(flight)
      return
    }
    // Live subscriptions observe all flights of their key.
    guard shard[index].state.running === flight, !shard[index].state.isInBackground,
      !shard.isLive(index)
    else { return }
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
    statistics.fetchTime += flight.duration
    statistics.longestFetch = max(statistics.longestFetch, flight.duration)
  }

  /// Answers a request with the remembered failure, or with the value in its place.
  @inlinable
  mutating func fallBack(_ index: Int, at now: Nanoseconds) -> KeyedCache<Key, Value>.Admission {
    guard let failure = keys.entries[index].element.state.failure else {
      return .failed(CancellationError())
    }
    guard keys.entries[index].element.state.allowsFallback(failure.grounds, at: now),
      let copy = copy(index)
    else {
      statistics.misses &+= 1
      return .failed(failure.error)
    }
    statistics.staleHits &+= 1
    copy.source = .memory
    copy.isStale = true
    copy.error = failure.error
    return .answered(copy)
  }
}
