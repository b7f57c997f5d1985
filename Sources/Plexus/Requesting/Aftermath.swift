/// A flight that has to be launched, and what its fetch is told.
struct Launch<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  let flight: Flight<Key, Value>
  /// The value that it is to renew.
  var previous: StoredCopy<Value>?
  /// Whether the stored copy is to be read before anything is fetched.
  var readsFirst = false
  /// Whether a stored copy will do in place of a new value.
  var takesStoredCopy = false
}

/// What a change leaves to be done once no lock is held: it may run a user's code.
struct Aftermath<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// Whether somebody wants to know of events.
  let tellsEvents: Bool
  /// What those are told who keep a log, in order; the name of the key is made later.
  private(set) var events: [(key: Key, event: @Sendable (_ key: String) -> CacheEvent)] = []
  /// What subscribers are told, in order.
  var deliveries: [Delivery<LoadState<Value>>] = []
  /// The flights to launch.
  var launches: [Launch<Key, Value>] = []
  /// The flights to cancel.
  var cancels: [Flight<Key, Value>] = []
  /// The flights whose callers need not wait any longer, and what they get.
  var settles: [(flight: Flight<Key, Value>, outcome: Flight<Key, Value>.Outcome)] = []
  /// What came before those, to be released.
  var predecessors: [any FlightNode] = []
  /// The flights that were taken out, to be released.
  var flights: [Flight<Key, Value>] = []
  /// What was replaced, to be released.
  var states: [FlightState<Value>] = []
  /// What was removed, to be released.
  var entries: ContiguousArray<KeyTable<Key, FlightState<Value>>.Entry> = []
  /// What the ledger has replaced, to be released.
  var notes = StorageLedger<Key, Value>.Garbage()
  /// Whether the cacher has something to do that nobody has called for: values have left memory that it does
  /// not have, or it has a copy that must go.
  var callsCacher = false

  init(tellsEvents: Bool) {
    self.tellsEvents = tellsEvents
  }

  /// Notes an event, if somebody wants to know.
  mutating func note(_ key: Key, _ event: @escaping @Sendable (_ key: String) -> CacheEvent) {
    if tellsEvents { events.append((key, event)) }
  }
}
