// Unsafe: `useRecord` refers to the object that `extras` retains. `extras` is set once, and both are accessed under the
// lock of the shard.

/// The keys that share one lock: their values and states, and the streams of their subscribers.
///
/// No task is resumed, no user code is called except `==` of keys, and nothing is released here; ``CacheEffects`` have
/// the work that remains. The code that every request runs is `@inlinable`, so that it is specialized for the types
/// of the cache; rarely used code is not.
@usableFromInline
@safe
struct Shard<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline typealias Table = KeyTable<Key, CachedEntry<Value>>
  @usableFromInline typealias Change = @Sendable (inout Value) -> Void
  @usableFromInline typealias Edits = EditState<Value, Change>
  @usableFromInline typealias Hub = BroadcastHub<LoadState<Value>>
  @usableFromInline typealias Extras = ShardExtras<Key, Value>

  // A hit reads the keys and then counts: next to the lock and to each other, these words share its cache line.
  @usableFromInline var keys = Table()
  /// The parts for features that most caches do not use, if one of them is used.
  @usableFromInline var extras: Extras?
  /// The extras, if a hit is recorded there: with a limit of the capacity or of the idle time.
  ///
  /// They are read without reference counting, which would cost more than the rest of the record: `extras` keeps them.
  @usableFromInline var useRecord: Unmanaged<Extras>?
  @usableFromInline var statistics = CacheStatistics()
  /// The number of keys with a value.
  @usableFromInline var valueCount = 0
  /// The number of pauses during which results of new work are not stored.
  @usableFromInline var pauseCount = 0
  @usableFromInline var failuresSinceSweep = 0
  /// The index of the next entry that is examined for a value that is too old.
  @usableFromInline var staleSweepPosition = 0

  /// - Parameters:
  ///   - limit: The largest cost of all values together, if there is a limit.
  ///   - timeToIdle: The time for which a value is fresh after its last use, if there is a limit.
  ///   - hasTags: Whether keys have tags.
  ///   - pendingWrites: The changes that are still to be written to the cacher, if there is one.
  @inlinable
  init(
    limit: Int?,
    timeToIdle: Nanoseconds?,
    hasTags: Bool,
    pendingWrites: PendingWrites<Key, Value>?
  ) {
    guard limit != nil || hasTags || timeToIdle != nil || pendingWrites != nil else { return }
    let extras = Extras()
    extras.eviction = limit.map { S3FIFO(limit: $0) }
    extras.tagIndex = hasTags ? TagIndex() : nil
    extras.idleTimes = timeToIdle.map { IdleTimes(timeToIdle: $0) }
    extras.pendingWrites = pendingWrites
    self.extras = extras
    if limit != nil || timeToIdle != nil { unsafe useRecord = .passUnretained(extras) }
  }

  /// Returns the parts for features that most caches do not use, creating them if needed.
  @inlinable
  mutating func makeExtras() -> Extras {
    if let extras { return extras }
    let new = Extras()
    extras = new
    return new
  }

  /// Whether there is a limit.
  @inlinable var isBounded: Bool { extras?.eviction != nil }

  /// Whether keys have subscribers.
  @inlinable var hasHubs: Bool { extras.map { !$0.hubs.isEmpty } ?? false }

  /// Whether keys have live subscriptions.
  @inlinable var hasLives: Bool { extras.map { !$0.lives.isEmpty } ?? false }

  /// Whether values are being updated.
  @inlinable var hasEdits: Bool { extras.map { !$0.edits.isEmpty } ?? false }

  /// Returns the hub of a key, if it has subscribers.
  @inlinable
  func hub(of key: Key, hash: UInt64) -> Hub? {
    guard let extras else { return nil }
    return extras.hubs.index(of: key, hash: hash).map { extras.hubs.entries[$0].element }
  }

  /// Returns the value of a key and counts a hit, if the value is fresh.
  @inlinable
  mutating func hit(
    _ key: Key,
    hash: UInt64,
    ticket: RefreshTicket,
    at now: Nanoseconds,
    refreshAhead: Nanoseconds
  ) -> Value? {
    guard
      let index = hitIndex(key, hash: hash, ticket: ticket, at: now, refreshAhead: refreshAhead)
    else { return nil }
    return keys.entries[index].element.value
  }

  /// Returns the index of a key and counts a hit, if its value is fresh.
  ///
  /// A value that has to be renewed before its deadline is left to ``KeyedCache/admit(_:hash:_:_:)``.
  @inlinable
  mutating func hitIndex(
    _ key: Key,
    hash: UInt64,
    ticket: RefreshTicket,
    at now: Nanoseconds,
    refreshAhead: Nanoseconds
  ) -> Int? {
    guard let index = keys.index(of: key, hash: hash) else { return nil }
    guard keys.entries[index].element.state.isFresh(at: now &+ refreshAhead) else { return nil }
    // While a flight is running, the answer depends on the refresh.
    guard ticket.isNone || keys.entries[index].element.state.isAtRest else { return nil }
    if let useRecord = unsafe useRecord,
      unsafe !useRecord._withUnsafeGuaranteedRef({ $0.recordHit(index, at: now) })
    {
      return nil
    }
    statistics.hits &+= 1
    return index
  }

  /// Returns the value of a key, however old.
  @inlinable
  func value(of key: Key, hash: UInt64) -> Value? {
    guard let index = keys.index(of: key, hash: hash) else { return nil }
    return keys.entries[index].element.value
  }

  // MARK: - Keys

  /// Returns the index of a key, which is added if it is missing.
  @inlinable
  mutating func place(of key: Key, hash: UInt64, tags: [CacheTag]?) -> Int {
    keys.index(of: key, hash: hash) ?? insert(CachedEntry(), for: key, hash: hash, tags: tags)
  }

  /// Adds a new key.
  @inlinable
  mutating func insert(
    _ entry: CachedEntry<Value>,
    for key: Key,
    hash: UInt64,
    tags: [CacheTag]?
  ) -> Int {
    extras?.insert(key, hash: hash, tags: tags)
    return keys.insert(entry, for: key, hash: hash)
  }

  /// Removes a key; the last one takes its index.
  @inlinable
  mutating func remove(at index: Int) -> Table.Entry {
    if hasValue(index) {
      valueCount &-= 1
      if hasEdits { releaseEdits(of: index) }
    }
    extras?.remove(at: index, keys.entries[index].key, hash: keys.entries[index].hash)
    return keys.remove(at: index)
  }

  /// Removes all keys.
  mutating func removeAll() -> ContiguousArray<Table.Entry> {
    valueCount = 0
    if hasEdits { changeEdits { $0.removeValue() } }
    extras?.removeAll()
    return keys.removeAll()
  }

  /// The entry at an index.
  @inlinable
  subscript(index: Int) -> CachedEntry<Value> {
    get { keys.entries[index].element }
    _modify { yield &keys.entries[index].element }
  }

  /// Returns whether the entry at an index has a value.
  @inlinable
  func hasValue(_ index: Int) -> Bool {
    // A comparison with `nil` would copy the value.
    if case .some = keys.entries[index].element.value { true } else { false }
  }

  /// Replaces or removes the value at an index.
  ///
  /// A new value goes below the drafts of its key by ``putBelowDrafts(_:_:_:)``.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - index: The index.
  /// - Returns: The old value, to be released with no lock held.
  @inlinable
  @inline(__always)
  mutating func setValue(_ value: Value?, at index: Int) -> Value? {
    var old = value
    swap(&old, &keys.entries[index].element.value)
    valueCount &+= (value == nil ? 0 : 1) &- (old == nil ? 0 : 1)
    if value == nil, hasEdits { releaseEdits(of: index) }
    return old
  }

  /// Records a request: a value that was idle until now is stale from the end of its time to idle.
  @inlinable
  mutating func use(_ index: Int, at now: Nanoseconds) {
    if extras?.use(index, at: now) == false { expireIdle(index, at: now) }
  }

  /// Makes a value stale if its time to idle is over.
  @inlinable
  mutating func expireIdle(_ index: Int, at now: Nanoseconds) {
    guard let deadline = extras?.idleTimes?.deadline(of: index), now >= deadline else { return }
    keys.entries[index].element.state.expire(at: deadline)
  }

  /// Returns a copy of the value at an index, with its metadata.
  @inlinable
  func copy(_ index: Int) -> ValueOutcome<Value>? {
    guard let value = keys.entries[index].element.value else { return nil }
    let copy = ValueOutcome(value)
    keys.entries[index].element.state.describe(copy)
    return copy
  }

  /// Removes a key without a value and without details.
  @inlinable
  @inline(__always)
  mutating func removeIfEmpty(_ index: Int, _ effects: inout CacheEffects) {
    guard !hasValue(index), keys.entries[index].element.state.hasNoDetails else { return }
    effects.release(remove(at: index))
  }

  /// Counts a failure, and removes keys that have only a failure once there can be many of them.
  ///
  /// A key with subscribers stays, so that later subscribers get the same state. In a bounded cache, remembered
  /// failures are bounded, too: the ones that end first are removed early.
  @inlinable
  mutating func noteFailure(at now: Nanoseconds, _ effects: inout CacheEffects) {
    failuresSinceSweep += 1
    guard failuresSinceSweep > 32 + keys.count / 2 else { return }
    failuresSinceSweep = 0
    sweepFailures(at: now, &effects)
  }

  @usableFromInline
  @inline(never)
  mutating func sweepFailures(at now: Nanoseconds, _ effects: inout CacheEffects) {
    var remembered: [Nanoseconds] = []
    for index in keys.entries.indices.reversed() where !hasValue(index) {
      let entry = keys.entries[index]
      guard hub(of: entry.key, hash: entry.hash) == nil else { continue }
      if entry.element.state.isForgettable(at: now) {
        effects.release(remove(at: index))
      } else if let failure = entry.element.state.failure, entry.element.state.isAtRest {
        remembered.append(failure.until)
      }
    }
    // Requests of keys that do not exist would otherwise fill the memory of a bounded cache.
    guard let eviction = extras?.eviction else { return }
    let limit = max(64, min(eviction.count, eviction.limit))
    guard remembered.count > limit else { return }
    remembered.sort()
    let earliest = remembered[remembered.count - limit / 2]
    var victims: [Int] = []
    // Many can end at the same moment, or never: the first of these are removed.
    var surplus = remembered.count - limit / 2 - (remembered.firstIndex(of: earliest) ?? 0)
    for index in keys.entries.indices where !hasValue(index) {
      let entry = keys.entries[index]
      guard let failure = entry.element.state.failure, entry.element.state.isAtRest,
        failure.until <= earliest, hub(of: entry.key, hash: entry.hash) == nil
      else { continue }
      if failure.until == earliest {
        guard surplus > 0 else { continue }
        surplus -= 1
      }
      victims.append(index)
    }
    for index in victims.reversed() { effects.release(remove(at: index)) }
  }

  // MARK: - Unwritten values

  /// Marks a value as one that the cacher does not have, if there is a cacher.
  @inlinable
  func recordUnwritten(_ arrival: borrowing Arrival, _ effects: inout CacheEffects) {
    guard let extras else { return }
    let index = arrival.index
    if let start = arrival.start { extras.pendingWrites?.setStart(start, at: index) }
    guard let name = arrival.name, let start = extras.pendingWrites?.start(at: index) else {
      return
    }
    // A change of a value that another process can have changed before.
    let isContested =
      arrival.start == nil
      && (start.isContested || self[index].state.isDistrusted
        || extras.pendingWrites?.isContested(
          keys.entries[index].key,
          hash: keys.entries[index].hash,
          name: name
        ) == true)
    extras.pendingWrites?.noteValue(
      keys.entries[index].key,
      hash: keys.entries[index].hash,
      name: name,
      start: start,
      isNewest: arrival.isNewest,
      isContested: isContested,
      &effects
    )
  }

  /// Keeps a copy of an entry that leaves memory until it is written.
  @usableFromInline
  @inline(never)
  mutating func depart(_ index: Int, _ effects: inout CacheEffects) {
    let entry = keys.entries[index]
    guard let copy = confirmedCopy(index) else { return }
    // With a slow cacher, a few times as many values wait to be written as are in memory.
    let limit = extras?.eviction.map { max(1024, 4 * min($0.count, $0.limit)) }
    depart(entry.key, entry.hash, copy, limit: limit, &effects)
  }

  /// Keeps a copy of a value that leaves memory until it is written.
  @usableFromInline
  func depart(
    _ key: Key,
    _ hash: UInt64,
    _ copy: ValueOutcome<Value>,
    limit: Int?,
    _ effects: inout CacheEffects
  ) {
    extras?.pendingWrites?.depart(key, hash: hash, copy, limit: limit, &effects)
    if extras?.pendingWrites?.hasDepartures == true { effects.callsCacher = true }
  }

  // MARK: - Flights

  /// Returns a new flight of a key.
  @inlinable
  func makeFlight(
    _ index: Int,
    source: Flight.Source,
    priority: PriorityLevel,
    hasCaller: Bool = false,
    predecessor: WaitNode? = nil
  ) -> KeyFlight<Key> {
    KeyFlight(
      keys.entries[index].key,
      source: source,
      hash: keys.entries[index].hash,
      priority: priority,
      hasCaller: hasCaller,
      predecessor: predecessor
    )
  }

  /// Prepares a new flight for its fetch, and adds it to the flights to launch.
  ///
  /// - Parameters:
  ///   - flight: The flight.
  ///   - index: The index of its key.
  ///   - isBulk: Whether it can become part of a fetch of several keys, which is counted once.
  ///   - effects: Receives the work that remains.
  @inlinable
  mutating func launch(
    _ flight: Flight,
    _ index: Int,
    isBulk: Bool,
    _ effects: inout CacheEffects
  ) {
    // A value that was not modified since is the confirmed one.
    flight.plan.previous = hasEdits ? confirmedCopy(index) : copy(index)
    if let pendingWrites = extras?.pendingWrites {
      flight.plan.readsFirst =
        pendingWrites.isShared || flight.plan.previous == nil && pendingWrites.isReadFirst
      // A refresh needs a newer value than the cacher can have.
      if keys.entries[index].element.state.servesRefresh { flight.plan.takesStoredCopy = false }
    }
    if !isBulk, !flight.plan.readsFirst, !flight.isDelayed {
      statistics.fetches &+= 1
      flight.plan.isCounted = true
    }
    effects.launched.append(flight)
  }

  // MARK: - Streams

  /// Publishes the state of a key to its subscribers.
  @inlinable
  mutating func publish(_ index: Int, _ effects: inout CacheEffects) {
    guard hasHubs else { return }
    publish(loadState(index), keys.entries[index].key, keys.entries[index].hash, &effects)
  }

  /// Publishes a state to the subscribers of a key.
  @inlinable
  @inline(never)
  mutating func publish(
    _ state: LoadState<Value>,
    _ key: Key,
    _ hash: UInt64,
    _ effects: inout CacheEffects
  ) {
    guard let hub = hub(of: key, hash: hash) else { return }
    var delivery = Delivery<LoadState<Value>>()
    if hub.prepare(state, &delivery) { effects.deliver { [delivery] in delivery.deliver() } }
    if hasLives { notifyLive(key, hash, &effects) }
  }

  /// Publishes `.unknown` to the subscribers of a key, in place of the states that they have not read.
  ///
  /// Without an entry `.unknown` is the last state that they were sent.
  @usableFromInline
  @inline(never)
  func publishReset(_ key: Key, _ hash: UInt64, _ effects: inout CacheEffects) {
    guard let hub = hub(of: key, hash: hash) else { return }
    guard keys.index(of: key, hash: hash) != nil else {
      let unread = hub.takeUnread(upTo: .unknown)
      return effects.deliver { unread.deliver() }
    }
    var delivery = Delivery<LoadState<Value>>()
    hub.prepareReset(.unknown, &delivery)
    effects.deliver { [delivery] in delivery.deliver() }
  }

  /// Publishes `.unknown` to the subscribers of all keys.
  @inline(never)
  func publishResets(_ effects: inout CacheEffects) {
    for hub in extras?.hubs.entries ?? [] { publishReset(hub.key, hub.hash, &effects) }
  }

  /// Returns the state for the subscribers of a key.
  @inlinable
  func loadState(_ index: Int) -> LoadState<Value> {
    let entry = keys.entries[index].element
    return entry.state.isAtRest ? restingState(index) : .loading(previous: entry.value)
  }

  /// Returns the state for the subscribers of a key once no flight is running.
  @inlinable
  func restingState(_ index: Int) -> LoadState<Value> {
    let entry = keys.entries[index].element
    if let error = entry.state.failureError { return .failed(error, previous: entry.value) }
    return entry.value.map { .loaded($0) } ?? .unknown
  }
}
