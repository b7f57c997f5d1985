/// What the cacher has yet to learn about the keys of one stripe.
///
/// It changes together with the keys, under the same lock, so that what is cleared is written neither now
/// nor later.
///
/// Nothing is released here: what is replaced or removed is handed out.
struct StorageLedger<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// A value in memory that the cacher does not have.
  struct Note: Sendable {
    /// The key as the cacher knows it.
    let name: String
    let revision: UInt64
  }

  /// A value that had to leave memory before it was written.
  struct Departure: Sendable {
    let copy: StoredCopy<Value>
    let revision: UInt64
  }

  /// What is known of a stored copy without asking the cacher.
  enum Lookup: Sendable {
    /// It is on its way to the cacher.
    case departing(StoredCopy<Value>)
    /// It has to be removed, and must not be used.
    case removed
    /// Whatever the cacher has; it is out of date if it was stored at this time or before.
    case elsewhere(outdatedUntil: Duration?)
  }

  /// Whether stored copies are read before anything is fetched.
  let isReadFirst: Bool
  private(set) var unflushed = KeyTable<Key, Note>()
  private(set) var departures: [String: Departure] = [:]
  /// The names of the copies to remove.
  private(set) var removals: [String: UInt64] = [:]
  /// Whether all copies are to be removed.
  private(set) var completeRemoval: UInt64?
  private var refreshes: [String: Duration] = [:]
  private var lastRefresh: Duration?
  private var lastRevision: UInt64 = 0

  init(isReadFirst: Bool) {
    self.isReadFirst = isReadFirst
  }

  private mutating func nextRevision() -> UInt64 {
    lastRevision += 1
    return lastRevision
  }

  /// Whether there are values that wait to be written without anybody having called for it.
  var hasDepartures: Bool { !departures.isEmpty }

  /// Whether copies are waiting to be removed.
  var hasRemovals: Bool { !removals.isEmpty || completeRemoval != nil }

  /// Looks for the stored copy of a key.
  func lookUp(_ name: String) -> Lookup {
    if let departure = departures[name] { return .departing(departure.copy) }
    if completeRemoval != nil || removals[name] != nil { return .removed }
    guard let refresh = refreshes[name] else { return .elsewhere(outdatedUntil: lastRefresh) }
    return .elsewhere(outdatedUntil: lastRefresh.map { max($0, refresh) } ?? refresh)
  }

  // MARK: - Changes

  /// What a change has replaced, to be released without the lock.
  struct Garbage: Sendable {
    var entries: ContiguousArray<KeyTable<Key, Note>.Entry> = []
    var departures: [Departure] = []
  }

  /// A key has a new value in memory.
  mutating func noteValue(_ key: Key, hash: UInt64, name: String, _ garbage: inout Garbage) {
    removeNote(key, hash: hash, &garbage)
    _ = unflushed.insert(Note(name: name, revision: nextRevision()), for: key, hash: hash)
    removeDeparture(name, &garbage)
    refreshes[name] = nil
  }

  /// A value leaves memory; if the cacher does not have it, a copy is kept here until it has.
  mutating func depart(
    _ key: Key,
    hash: UInt64,
    _ copy: @autoclosure () -> StoredCopy<Value>,
    _ garbage: inout Garbage
  ) {
    guard let index = unflushed.index(of: key, hash: hash) else { return }
    let entry = unflushed.remove(at: index)
    let departure = Departure(copy: copy(), revision: entry.element.revision)
    if let old = departures.updateValue(departure, forKey: entry.element.name) {
      garbage.departures.append(old)
    }
    garbage.entries.append(entry)
  }

  /// A value that is not kept in memory at all goes to the cacher.
  mutating func depart(_ name: String, _ copy: StoredCopy<Value>, _ garbage: inout Garbage) {
    let departure = Departure(copy: copy, revision: nextRevision())
    if let old = departures.updateValue(departure, forKey: name) { garbage.departures.append(old) }
    refreshes[name] = nil
  }

  /// A key is cleared.
  mutating func remove(_ key: Key, hash: UInt64, name: String, _ garbage: inout Garbage) {
    removeNote(key, hash: hash, &garbage)
    removeDeparture(name, &garbage)
    refreshes[name] = nil
    removals[name] = nextRevision()
  }

  /// Everything is cleared.
  mutating func removeAll(_ garbage: inout Garbage) {
    garbage.entries += unflushed.removeAll()
    garbage.departures += departures.values
    departures = [:]
    refreshes = [:]
    completeRemoval = nextRevision()
  }

  /// The value of a key has changed at its origin: a copy stored until then is out of date.
  mutating func refresh(_ name: String, at time: Duration) {
    refreshes[name] = time
  }

  /// All values have changed at their origin.
  mutating func refreshAll(at time: Duration) {
    refreshes = [:]
    lastRefresh = time
  }

  private mutating func removeNote(_ key: Key, hash: UInt64, _ garbage: inout Garbage) {
    guard let index = unflushed.index(of: key, hash: hash) else { return }
    garbage.entries.append(unflushed.remove(at: index))
  }

  private mutating func removeDeparture(_ name: String, _ garbage: inout Garbage) {
    if let old = departures.removeValue(forKey: name) { garbage.departures.append(old) }
  }

  // MARK: - What the cacher has done

  /// Copies were removed, unless they have to be removed once more since.
  mutating func confirmRemoval(of names: some Sequence<(name: String, revision: UInt64)>) {
    for (name, revision) in names where removals[name] == revision { removals[name] = nil }
  }

  /// All copies were removed, with those of the names.
  mutating func confirmCompleteRemoval(_ revision: UInt64) {
    if completeRemoval == revision { completeRemoval = nil }
    removals = removals.filter { $0.value > revision }
  }

  /// A value in memory was written, unless there is a newer one since.
  mutating func confirm(
    _ key: Key,
    hash: UInt64,
    revision: UInt64,
    _ garbage: inout Garbage
  ) {
    guard let index = unflushed.index(of: key, hash: hash),
      unflushed.entries[index].element.revision == revision
    else { return }
    garbage.entries.append(unflushed.remove(at: index))
  }

  /// A value that had left memory was written or is given up, unless there is a newer one since.
  ///
  /// - Returns: Whether it was still this one.
  @discardableResult
  mutating func endDeparture(_ name: String, revision: UInt64, _ garbage: inout Garbage) -> Bool {
    guard departures[name]?.revision == revision else { return false }
    removeDeparture(name, &garbage)
    return true
  }
}

/// A value with all that a cacher keeps of it, in terms of the monotonic clock.
struct StoredCopy<Value: Sendable>: Sendable {
  let value: Value
  let validator: String?
  /// When it was fetched or stored.
  let storedAt: Nanoseconds
  /// The time to live that came with it.
  let ownTimeToLive: Nanoseconds?
}
