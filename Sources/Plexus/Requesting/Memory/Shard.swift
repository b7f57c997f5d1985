/// The value of a key, and the state of the key.
@usableFromInline
struct CachedEntry<Value: Sendable>: Sendable {
  @usableFromInline var value: Value?
  @usableFromInline var state = EntryState()

  @inlinable
  init() {}
}

/// The keys that share one lock: their values and states, and the streams of their subscribers.
///
/// No task is resumed, no user code is called and nothing is released here; ``Effects`` carry what is left to
/// be done. What every request needs is `@inlinable`, so that it is compiled for the types of the cache; what
/// few need is not.
@usableFromInline
struct Shard<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline typealias Table = KeyTable<Key, CachedEntry<Value>>
  @usableFromInline typealias Change = @Sendable (inout Value) -> Void
  @usableFromInline typealias Edits = EditState<Value, Change>
  @usableFromInline typealias Hub = BroadcastHub<LoadState<Value>>
  @usableFromInline typealias Extras = ShardExtras<Key, Value>

  // A hit looks at the keys and then counts: beside the lock, and beside each other, these words share a cache line
  // with it.
  @usableFromInline var keys = Table()
  /// What belongs to features that most caches do not use, if one of them is used.
  @usableFromInline var extras: Extras?
  @usableFromInline var statistics = CacheStatistics()
  /// The number of keys with a value.
  @usableFromInline var valueCount = 0
  /// The number of reasons to keep nothing of what begins now.
  @usableFromInline var pauseCount = 0
  @usableFromInline var failuresSinceSweep = 0

  /// - Parameters:
  ///   - limit: The largest cost of all values together, if there is a limit.
  ///   - timeToIdle: How long a value is fresh after its last use, if there is a limit.
  ///   - hasTags: Whether keys have tags.
  ///   - pendingWrites: The changes that the cacher has yet to be told, if there is one.
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
  }

  /// The part for features that most caches do not use, which is there from now on.
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

  /// Whether values are being updated.
  @inlinable var hasEdits: Bool { extras.map { !$0.edits.isEmpty } ?? false }

  /// The stream of a key, if it has subscribers.
  @inlinable
  func hub(of key: Key, hash: UInt64) -> Hub? {
    guard let extras else { return nil }
    return extras.hubs.index(of: key, hash: hash).map { extras.hubs.entries[$0].element }
  }

  /// The value of a key, if it is fresh; counted as a hit.
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

  /// The place of a key with a fresh value; counted as a hit.
  ///
  /// A value that has to be renewed before its time is over is left to ``KeyedCache/admit(_:hash:ticket:scope:isBulk:_:)``.
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
    // While a flight is under way it depends on the refresh.
    guard ticket.isNone || keys.entries[index].element.state.isAtRest else { return nil }
    if let extras {
      if extras.idleTimes?.use(index, at: now) == false { return nil }
      extras.eviction?.use(index)
    }
    statistics.hits &+= 1
    return index
  }

  /// The value of a key, however old.
  @inlinable
  func value(of key: Key, hash: UInt64) -> Value? {
    guard let index = keys.index(of: key, hash: hash) else { return nil }
    return keys.entries[index].element.value
  }

  // MARK: - Keys

  /// The place of a key, which is added if it is not there.
  @inlinable
  mutating func place(of key: Key, hash: UInt64, tags: [CacheTag]?) -> Int {
    keys.index(of: key, hash: hash) ?? insert(CachedEntry(), for: key, hash: hash, tags: tags)
  }

  /// Adds a key that is not there.
  @inlinable
  mutating func insert(
    _ entry: CachedEntry<Value>,
    for key: Key,
    hash: UInt64,
    tags: [CacheTag]?
  ) -> Int {
    if let extras {
      extras.eviction?.append()
      if let tags { extras.tagIndex?.insert(key, hash: hash, tags: tags) }
      extras.idleTimes?.append()
    }
    return keys.insert(entry, for: key, hash: hash)
  }

  /// Removes a key; the last one takes its place.
  @inlinable
  mutating func remove(at index: Int) -> Table.Entry {
    if hasValue(index) {
      valueCount &-= 1
      if hasEdits { noteChange(of: index) }
    }
    if let extras {
      extras.eviction?.remove(at: index)
      extras.tagIndex?.remove(keys.entries[index].key, hash: keys.entries[index].hash)
      extras.idleTimes?.remove(at: index)
    }
    return keys.remove(at: index)
  }

  /// Removes all keys.
  @inlinable
  mutating func removeAll() -> ContiguousArray<Table.Entry> {
    valueCount = 0
    if hasEdits { noteChanges() }
    if let extras {
      extras.eviction?.removeAll()
      if extras.tagIndex != nil { extras.tagIndex = TagIndex() }
      extras.idleTimes?.removeAll()
    }
    return keys.removeAll()
  }

  /// The entry at a place.
  @inlinable
  subscript(index: Int) -> CachedEntry<Value> {
    get { keys.entries[index].element }
    _modify { yield &keys.entries[index].element }
  }

  /// Whether there is a value at a place.
  @inlinable
  func hasValue(_ index: Int) -> Bool {
    keys.entries[index].element.value != nil
  }

  /// Replaces or removes the value at a place.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - index: The place.
  ///   - isEdit: Whether it is the result of an update, which has told the other updates.
  /// - Returns: The value that was there, to be released with no lock held.
  @inlinable
  mutating func setValue(_ value: Value?, at index: Int, isEdit: Bool = false) -> Value? {
    let old = keys.entries[index].element.value
    valueCount &+= (value == nil ? 0 : 1) &- (old == nil ? 0 : 1)
    keys.entries[index].element.value = value
    if !isEdit, hasEdits { noteChange(of: index) }
    return old
  }

  /// Takes note that a request has come: a value that was idle until now is stale from the end of its time to idle.
  @inlinable
  mutating func noteUse(_ index: Int, at now: Nanoseconds) {
    guard let extras else { return }
    extras.eviction?.use(index)
    if extras.idleTimes?.use(index, at: now) == false { expireIdle(index, at: now) }
  }

  /// Makes a value stale whose time to idle is over.
  @inlinable
  mutating func expireIdle(_ index: Int, at now: Nanoseconds) {
    guard let deadline = extras?.idleTimes?.deadline(of: index), now >= deadline else { return }
    keys.entries[index].element.state.expire(at: deadline)
  }

  /// Tells updates of a value that it is another one.
  @inlinable
  mutating func noteChange(of index: Int) {
    let entry = keys.entries[index]
    guard let extras, let place = extras.edits.index(of: entry.key, hash: entry.hash) else {
      return
    }
    extras.edits.entries[place].element.displace()
  }

  /// Tells all updates that the values are gone.
  @usableFromInline
  @inline(never)
  mutating func noteChanges() {
    guard let extras else { return }
    for index in extras.edits.entries.indices { extras.edits.entries[index].element.displace() }
  }

  /// Removes what no update needs any more.
  @inlinable
  mutating func sweepEdits(_ effects: inout Effects) {
    guard let extras else { return }
    for index in extras.edits.entries.indices.reversed()
    where extras.edits.entries[index].element.isEmpty {
      effects.release(extras.edits.remove(at: index))
    }
  }

  /// A copy of the confirmed value at a place, with all that belongs to it.
  @usableFromInline
  func confirmedCopy(_ index: Int) -> ValueOutcome<Value>? {
    guard let base = base(of: keys.entries[index].key, hash: keys.entries[index].hash) else {
      return copy(index)
    }
    let copy = ValueOutcome(base)
    keys.entries[index].element.state.describe(copy)
    return copy
  }

  /// The confirmed value of a key, if the one in memory is not.
  @inlinable
  func base(of key: Key, hash: UInt64) -> Value? {
    extras.flatMap { Self.base(of: key, hash: hash, in: $0.edits) }
  }

  /// The confirmed value of a key, if the one in memory is not.
  @inlinable
  static func base(of key: Key, hash: UInt64, in edits: KeyTable<Key, Edits>) -> Value? {
    edits.index(of: key, hash: hash).flatMap { edits.entries[$0].element.base }
  }

  /// A copy of the value at a place, with all that belongs to it.
  @inlinable
  func copy(_ index: Int) -> ValueOutcome<Value>? {
    guard let value = keys.entries[index].element.value else { return nil }
    let copy = ValueOutcome(value)
    keys.entries[index].element.state.describe(copy)
    return copy
  }

  /// Removes a key of which nothing is known.
  @inlinable
  mutating func removeIfEmpty(_ index: Int, _ effects: inout Effects) {
    guard !hasValue(index), keys.entries[index].element.state.hasNoDetails else { return }
    effects.release(remove(at: index))
  }

  /// Forgets keys that merely failed, once there are many of them.
  ///
  /// A key with subscribers stays, so that later subscribers are told the same as they were. In a bounded
  /// cache, remembered failures are bounded, too: the oldest are forgotten before their time.
  @inlinable
  mutating func noteFailure(at now: Nanoseconds, _ effects: inout Effects) {
    failuresSinceSweep += 1
    guard failuresSinceSweep > 32 + keys.count / 2 else { return }
    failuresSinceSweep = 0
    sweepFailures(at: now, &effects)
  }

  @usableFromInline
  @inline(never)
  mutating func sweepFailures(at now: Nanoseconds, _ effects: inout Effects) {
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
    // Anyone who asks for keys that do not exist would otherwise fill the memory of a bounded cache.
    guard let eviction = extras?.eviction else { return }
    let limit = max(64, min(eviction.count, eviction.limit))
    guard remembered.count > limit else { return }
    remembered.sort()
    let earliest = remembered[remembered.count - limit / 2]
    var victims: [Int] = []
    // Many may end at the same moment, or never: of those the first ones go.
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

  // MARK: - Capacity

  /// Makes room for the value that a key has got, or evicts it if it costs more than the limit.
  ///
  /// Places have changed afterwards.
  @inlinable
  mutating func keep(
    _ index: Int,
    cost: Int,
    _ evicted: inout Evicted,
    _ effects: inout Effects,
    in engine: CacheEngine
  ) {
    guard let extras, let limit = extras.eviction?.limit, !isLive(index) else { return }
    guard cost <= limit else { return evict(index, &evicted, &effects) }
    extras.eviction?.keep(index, hash: keys.entries[index].hash, cost: cost)
    while let victim = nextVictim() {
      statistics.evictions += 1
      if effects.tellsEvents {
        note(keys.entries[victim].key, &effects, in: engine) {
          .removed(key: $0, cause: .capacity)
        }
      }
      evict(victim, &evicted, &effects)
    }
  }

  @inlinable
  mutating func nextVictim() -> Int? {
    extras?.eviction?.nextVictim { keys.entries[$0].hash }?.index
  }

  /// Removes a value from memory; the cacher is told first, and the flight under way goes on.
  @inlinable
  mutating func evict(_ index: Int, _ evicted: inout Evicted, _ effects: inout Effects) {
    if extras?.pendingWrites != nil { depart(index, &effects) }
    if !keys.entries[index].element.state.isAtRest {
      effects.release(keys.entries[index].element)
      _ = setValue(nil, at: index)
      keys.entries[index].element.state.dropValue()
      extras?.eviction?.discard(index)
      publish(index, &effects)
    } else {
      if hasHubs {
        publish(.unknown, keys.entries[index].key, keys.entries[index].hash, &effects)
      }
      evicted.append(remove(at: index))
    }
  }

  /// Entries that had to make room for others, to be released with no lock held.
  @usableFromInline
  struct Evicted: ~Copyable, Sendable {
    @usableFromInline var first: Table.Entry?
    @usableFromInline var others: ContiguousArray<Table.Entry> = []

    @inlinable
    init() {}

    @inlinable
    mutating func append(_ entry: Table.Entry) {
      if first == nil { first = entry } else { others.append(entry) }
    }
  }

  /// Notes a value that the cacher does not have, if there is one.
  ///
  /// - Parameters:
  ///   - index: The place of the value.
  ///   - name: The name of its key, if there is a cacher.
  ///   - generation: How much had been removed from the cacher before the value was fetched or stored.
  ///   - isNewest: Whether no refresh is to be served.
  ///   - effects: The work that is left to be done.
  @inlinable
  func noteUnwritten(
    _ index: Int,
    name: String?,
    generation: CacheGeneration?,
    isNewest: Bool,
    _ effects: inout Effects
  ) {
    guard let name, let extras else { return }
    extras.pendingWrites?.noteValue(
      keys.entries[index].key,
      hash: keys.entries[index].hash,
      name: name,
      generation: generation,
      isNewest: isNewest,
      &effects
    )
  }

  /// Notes what an entry that leaves memory has to tell the cacher.
  @usableFromInline
  @inline(never)
  mutating func depart(_ index: Int, _ effects: inout Effects) {
    let entry = keys.entries[index]
    guard let copy = confirmedCopy(index) else { return }
    // With a slow cacher, a few times as many are on their way to it as there are in memory.
    let limit = extras?.eviction.map { max(1024, 4 * min($0.count, $0.limit)) }
    extras?.pendingWrites?.depart(entry.key, hash: entry.hash, copy, limit: limit, &effects)
    if extras?.pendingWrites?.hasDepartures == true { effects.callsCacher = true }
  }

  // MARK: - Flights

  /// Makes the flight of a key.
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

  /// Gives a flight that has just begun what its fetch has to be told.
  ///
  /// - Parameters:
  ///   - flight: The flight.
  ///   - index: The place of its key.
  ///   - takesStoredCopy: Whether a stored copy is an answer, unless a refresh has to be served.
  ///   - isBulk: Whether it may become part of a fetch of several keys, which is counted once.
  ///   - effects: The work that is left to be done.
  @inlinable
  mutating func launch(
    _ flight: Flight,
    _ index: Int,
    takesStoredCopy: Bool = true,
    isBulk: Bool,
    _ effects: inout Effects
  ) {
    flight.previous = copy(index)
    if let pendingWrites = extras?.pendingWrites {
      flight.readsFirst =
        pendingWrites.isShared || flight.previous == nil && pendingWrites.isReadFirst
      flight.takesStoredCopy =
        takesStoredCopy && !keys.entries[index].element.state.servesRefresh
    }
    if !isBulk, !flight.readsFirst, !flight.isDelayed {
      statistics.fetches &+= 1
      flight.isCounted = true
    }
    effects.launched.append(flight)
  }

  // MARK: - Streams

  /// Announces the state of a key to its subscribers.
  @inlinable
  mutating func publish(_ index: Int, _ effects: inout Effects) {
    guard hasHubs else { return }
    publish(loadState(index), keys.entries[index].key, keys.entries[index].hash, &effects)
  }

  /// Announces a state to the subscribers of a key.
  @usableFromInline
  @inline(never)
  mutating func publish(
    _ state: LoadState<Value>,
    _ key: Key,
    _ hash: UInt64,
    _ effects: inout Effects
  ) {
    guard let hub = hub(of: key, hash: hash) else { return }
    if let delivery = hub.prepare(state) { effects.deliver { delivery.deliver() } }
    if let live = live(key, hash) { effects.deliver { live.note() } }
  }

  /// Announces `.unknown` to the subscribers of a key, in place of what they have not read.
  ///
  /// Without an entry `.unknown` is the last state that they were sent.
  @usableFromInline
  @inline(never)
  func publishReset(_ key: Key, _ hash: UInt64, _ effects: inout Effects) {
    guard let hub = hub(of: key, hash: hash) else { return }
    guard keys.index(of: key, hash: hash) != nil else {
      let unread = hub.takeUnread(upTo: .unknown)
      return effects.deliver { unread.deliver() }
    }
    guard let delivery = hub.prepareReset(.unknown) else { return }
    effects.deliver { delivery.deliver() }
  }

  /// The state that subscribers of a key are told.
  @inlinable
  func loadState(_ index: Int) -> LoadState<Value> {
    let entry = keys.entries[index].element
    return entry.state.isAtRest ? restingState(index) : .loading(previous: entry.value)
  }

  /// The state that subscribers of a key are told once no flight is under way.
  @inlinable
  func restingState(_ index: Int) -> LoadState<Value> {
    let entry = keys.entries[index].element
    if let error = entry.state.failureError { return .failed(error, previous: entry.value) }
    return entry.value.map { .loaded($0) } ?? .unknown
  }

  // MARK: - Events

  /// Notes an event for listeners.
  @usableFromInline
  @inline(never)
  func note(
    _ key: Key,
    _ effects: inout Effects,
    in engine: CacheEngine,
    _ event: @escaping @Sendable (_ key: String) -> CacheEvent
  ) {
    guard effects.tellsEvents else { return }
    effects.tell { engine.tell(event(engine.source.name(of: key))) }
  }
}
