/// The keys that share one lock: their states, flights and streams.
///
/// Nothing is resumed, called or released here; what has to be is handed out as ``Aftermath``.
@usableFromInline
struct Stripe<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  typealias State = FlightState<Value>
  typealias Hub = BroadcastHub<LoadState<Value>>

  // A hit counts first and then looks at the keys: beside the lock, and beside each other, these three
  // words share a cache line with it.
  @usableFromInline var statistics = CacheStatistics()
  @usableFromInline private(set) var keys = KeyTable<Key, FlightState<Value>>()
  /// What decides which values have to go, if there is a limit.
  @usableFromInline private(set) var eviction: S3FIFO?
  /// What the cacher has yet to learn, if there is one.
  var ledger: StorageLedger<Key, Value>?
  /// The flights under way and queued; those that were cut off are not among them.
  @usableFromInline var flights: [FlightID: Flight<Key, Value>] = [:]
  /// The streams of the keys that have subscribers.
  var hubs = KeyTable<Key, BroadcastHub<LoadState<Value>>>()
  /// For how many reasons nothing is kept of what begins now.
  var holds = 0
  private var lastFlight: UInt64 = 0
  private var failuresSinceSweep = 0

  /// - Parameters:
  ///   - limit: What all values may cost together, if there is a limit.
  ///   - ledger: What the cacher has yet to learn, if there is one.
  init(limit: Int? = nil, ledger: StorageLedger<Key, Value>? = nil) {
    eviction = limit.map { S3FIFO(limit: $0) }
    self.ledger = ledger
  }

  /// The value of a key, if it is fresh; counted as a hit.
  @inlinable
  mutating func hit(
    _ key: Key,
    hash: UInt64,
    ticket: RefreshTicket,
    at now: Nanoseconds
  ) -> Value? {
    guard let index = keys.index(of: key, hash: hash) else { return nil }
    guard keys.entries[index].element.isFresh(at: now) else { return nil }
    // While a flight is under way it depends on the refresh.
    guard ticket.isNone || keys.entries[index].element.isAtRest else { return nil }
    statistics.hits &+= 1
    eviction?.use(index)
    return keys.entries[index].element.value
  }

  /// The value of a key, however old.
  @inlinable
  func value(of key: Key, hash: UInt64) -> Value? {
    guard let index = keys.index(of: key, hash: hash) else { return nil }
    return keys.entries[index].element.value
  }

  /// A place in the flight that brings the first value of a key, if one is under way.
  @inlinable
  mutating func join(_ key: Key, hash: UInt64) -> (flight: Flight<Key, Value>, place: WaitPlace)? {
    guard let index = keys.index(of: key, hash: hash) else { return nil }
    guard let id = keys.entries[index].element.onlyHope, let flight = flights[id] else {
      return nil
    }
    statistics.joins &+= 1
    return (flight, flight.waiters.join())
  }

  // MARK: - Keys

  /// The place of a key, which is added if it is not there.
  mutating func place(of key: Key, hash: UInt64) -> Int {
    keys.index(of: key, hash: hash) ?? insert(State(), for: key, hash: hash)
  }

  /// Adds a key that is not there.
  mutating func insert(_ state: State, for key: Key, hash: UInt64) -> Int {
    eviction?.append()
    return keys.insert(state, for: key, hash: hash)
  }

  /// Removes a key; the last one takes its place.
  mutating func remove(at index: Int, _ aftermath: inout Aftermath<Key, Value>) {
    eviction?.remove(at: index)
    aftermath.entries.append(keys.remove(at: index))
  }

  /// Removes all keys.
  mutating func removeAll() -> ContiguousArray<KeyTable<Key, State>.Entry> {
    eviction?.removeAll()
    return keys.removeAll()
  }

  /// The state of a key at a place.
  subscript(index: Int) -> State {
    get { keys.entries[index].element }
    _modify { yield &keys.entries[index].element }
  }

  /// The value at a place was used by a request that was not a plain hit.
  mutating func noteUse(_ index: Int) {
    eviction?.use(index)
  }

  /// Removes a key of which nothing is known.
  mutating func removeIfEmpty(_ index: Int, _ aftermath: inout Aftermath<Key, Value>) {
    guard keys.entries[index].element.isEmpty else { return }
    remove(at: index, &aftermath)
  }

  /// Forgets keys that merely failed, once there are many of them.
  ///
  /// A key with subscribers stays: they will be told the same as those who come later.
  mutating func noteFailure(at now: Nanoseconds, _ aftermath: inout Aftermath<Key, Value>) {
    failuresSinceSweep += 1
    guard failuresSinceSweep > 32 + keys.count / 2 else { return }
    failuresSinceSweep = 0
    for index in keys.entries.indices.reversed() {
      let entry = keys.entries[index]
      guard entry.element.isForgettable(at: now) else { continue }
      guard hubs.index(of: entry.key, hash: entry.hash) == nil else { continue }
      remove(at: index, &aftermath)
    }
  }

  // MARK: - Room

  /// A key has got a value: others may have to go for it, or it goes itself if it costs too much.
  ///
  /// Places have changed afterwards.
  mutating func keep(_ index: Int, cost: Int, _ aftermath: inout Aftermath<Key, Value>) {
    guard let limit = eviction?.limit else { return }
    guard cost <= limit else { return evict(index, &aftermath) }
    eviction?.keep(index, hash: keys.entries[index].hash, cost: cost)
    while let victim = nextVictim() {
      statistics.evictions += 1
      aftermath.note(keys.entries[victim].key) { .evicted(key: $0) }
      evict(victim, &aftermath)
    }
  }

  /// The value at a place has gone for another reason than room.
  mutating func noteDiscard(_ index: Int) {
    eviction?.discard(index)
  }

  private mutating func nextVictim() -> Int? {
    let entries = keys.entries
    return eviction?.nextVictim { entries[$0].hash }?.index
  }

  /// A value leaves memory; the cacher is told first, and the flight under way goes on.
  private mutating func evict(_ index: Int, _ aftermath: inout Aftermath<Key, Value>) {
    let entry = keys.entries[index]
    depart(entry, &aftermath)
    if entry.element.running != nil {
      aftermath.states.append(entry.element)
      self[index].dropValue()
      eviction?.discard(index)
      publish(index, &aftermath)
    } else {
      publish(.unknown, entry.key, entry.hash, &aftermath)
      remove(at: index, &aftermath)
    }
  }

  /// What an entry that leaves memory has to tell the cacher is noted.
  mutating func depart(
    _ entry: KeyTable<Key, State>.Entry,
    _ aftermath: inout Aftermath<Key, Value>
  ) {
    guard ledger != nil, let copy = entry.element.copy else { return }
    ledger?.depart(entry.key, hash: entry.hash, copy, &aftermath.notes)
    if ledger?.hasDepartures == true { aftermath.callsCacher = true }
  }

  // MARK: - Flights

  /// The name that the next flight will have.
  var nextFlight: FlightID { FlightID(rawValue: lastFlight + 1) }

  /// Makes the flight that has the next name.
  mutating func makeFlight(
    for key: Key,
    hash: UInt64,
    source: FlightSource,
    priority: TaskPriority,
    predecessor: (any FlightNode)? = nil
  ) -> Flight<Key, Value> {
    let flight = Flight<Key, Value>(
      id: nextFlight,
      key: key,
      hash: hash,
      source: source,
      predecessor: predecessor
    )
    flight.work.raise(to: priority)
    lastFlight += 1
    flights[flight.id] = flight
    return flight
  }

  /// Takes a flight out that is over for its key.
  @discardableResult
  mutating func removeFlight(
    _ id: FlightID?,
    _ aftermath: inout Aftermath<Key, Value>
  ) -> Flight<Key, Value>? {
    guard let id, let flight = flights.removeValue(forKey: id) else { return nil }
    aftermath.flights.append(flight)
    return flight
  }

  /// The flight of a name is to be launched with what is known now.
  mutating func launch(
    _ id: FlightID,
    index: Int,
    takesStoredCopy: Bool = true,
    _ aftermath: inout Aftermath<Key, Value>
  ) {
    guard let flight = flights[id] else { return }
    let launch = Launch(
      flight: flight,
      previous: self[index].copy,
      readsFirst: self[index].value == nil && ledger?.isReadFirst == true,
      takesStoredCopy: takesStoredCopy && !self[index].servesRefresh
    )
    aftermath.launches.append(launch)
  }

  // MARK: - Streams

  /// Announces the state of a key to its subscribers.
  mutating func publish(_ index: Int, _ aftermath: inout Aftermath<Key, Value>) {
    guard !hubs.isEmpty else { return }
    publish(self[index].loadState, keys.entries[index].key, keys.entries[index].hash, &aftermath)
  }

  /// Announces a state to the subscribers of a key.
  mutating func publish(
    _ state: LoadState<Value>,
    _ key: Key,
    _ hash: UInt64,
    _ aftermath: inout Aftermath<Key, Value>
  ) {
    guard let index = hubs.index(of: key, hash: hash) else { return }
    aftermath.deliveries.append(hubs.entries[index].element.prepare(state))
  }
}
