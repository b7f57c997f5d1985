/// What the cacher has yet to learn about the keys of one stripe.
///
/// It changes together with the keys, under the same lock, so that what is cleared is written neither now
/// nor later.
///
/// Nothing is released here: what is replaced or removed is handed out.
@usableFromInline
struct PendingWrites<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// A value in memory that the cacher does not have.
  struct Note: Sendable {
    /// The key as the cacher knows it.
    let name: String
    let revision: UInt64
    /// How much had been removed from the cacher before the value was fetched or stored.
    var generation: CacheGeneration?
  }

  /// A value that had to leave memory before it was written.
  struct Departure: Sendable {
    let key: Key
    let hash: UInt64
    let copy: ValueOutcome<Value>
    let revision: UInt64
    var generation: CacheGeneration?
  }

  /// What is known of a stored copy without asking the cacher.
  enum Lookup: Sendable {
    /// It is on its way to the cacher, and may be out of date.
    case departing(ValueOutcome<Value>, isOutdated: Bool)
    /// It has to be removed, and must not be used.
    case removed
    /// Whatever the cacher has; it is out of date if it was stored at this time or before.
    case elsewhere(outdatedUntil: Duration?)
  }

  /// From when on a value has to be to count, in both orders: that of the wall clock, which other
  /// processes share, and that of the changes here, which no clock can mix up.
  struct Mark: Sendable {
    var time: Duration
    var revision: UInt64
  }

  /// Whether stored copies are read before anything is fetched.
  @usableFromInline let isReadFirst: Bool
  /// The only name that there is, if so: then nothing else may be removed.
  let onlyName: String?
  /// Whether the cacher is shared: then fetched values are stored by their leases, and refreshes are noted elsewhere.
  @usableFromInline let isShared: Bool
  /// Whether the cache has a capacity, so that what is noted here is bounded, too.
  let isBounded: Bool
  /// For how many reasons no stored copy may be used that was not written here.
  var readBlocks = 0
  private(set) var dirty = KeyTable<Key, Note>()
  private(set) var departures: [String: Departure] = [:]
  /// The keys of the values that had to leave memory before they were written.
  @usableFromInline var departedKeys: [TagIndex<Key>.HashedKey] {
    departures.values.map { ($0.key, $0.hash) }
  }

  /// The names of the copies to remove.
  private(set) var removals: [String: UInt64] = [:]
  /// Whether all copies are to be removed.
  private(set) var completeRemoval: UInt64?
  private(set) var refreshes: [String: Mark] = [:]
  /// The names of values that had to leave memory and were given up, since too many others were on their way.
  private(set) var overflow: Set<String> = []
  private var lastRefresh: Mark?
  /// The latest time of all entries written here: the clock may have been set back since.
  private(set) var newestWrite = Duration.zero
  private var lastRevision: UInt64 = 0

  @usableFromInline
  init(
    isReadFirst: Bool,
    isShared: Bool = false,
    onlyName: String? = nil,
    isBounded: Bool = false
  ) {
    self.isReadFirst = isReadFirst || isShared
    self.isShared = isShared
    self.isBounded = isBounded
    self.onlyName = onlyName
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
    if let departure = departures[name] {
      let isOutdated = isOutdated(name, revision: departure.revision)
      return .departing(departure.copy, isOutdated: isOutdated)
    }
    if readBlocks > 0 || isToBeRemoved(name) { return .removed }
    return .elsewhere(outdatedUntil: mark(of: name)?.time)
  }

  /// Whether the stored copy of a name has to be removed, and would take with it what is written now.
  func isToBeRemoved(_ name: String) -> Bool {
    completeRemoval != nil || removals[name] != nil
  }

  /// Whether the cacher has yet to write or remove the entry of a name.
  func owes(_ key: Key, hash: UInt64, name: String) -> Bool {
    isToBeRemoved(name) || departures[name] != nil || dirty.index(of: key, hash: hash) != nil
  }

  /// Whether the value of a revision has changed at its origin since.
  func isOutdated(_ name: String, revision: UInt64) -> Bool {
    mark(of: name).map { revision < $0.revision } ?? false
  }

  private func mark(of name: String) -> Mark? {
    guard let mark = refreshes[name] else { return lastRefresh }
    guard let lastRefresh else { return mark }
    return Mark(
      time: max(mark.time, lastRefresh.time),
      revision: max(mark.revision, lastRefresh.revision)
    )
  }

  // MARK: - Changes

  /// A key has a new value in memory.
  ///
  /// It is the newest if it satisfies every refresh; if not, it was fetched too early.
  @usableFromInline
  mutating func noteValue(
    _ key: Key,
    hash: UInt64,
    name: String,
    generation: CacheGeneration? = nil,
    isNewest: Bool,
    _ effects: inout Effects
  ) {
    removeNote(key, hash: hash, &effects)
    let note = Note(name: name, revision: nextRevision(), generation: generation)
    _ = dirty.insert(note, for: key, hash: hash)
    effects.hasChange = true
    removeDeparture(name, &effects)
    if isNewest {
      refreshes[name] = nil
    } else if let mark = mark(of: name) {
      refreshes[name] = Mark(time: mark.time, revision: nextRevision())
      boundRefreshes()
    }
  }

  /// The value of a key is replaced by one that is not written.
  mutating func forgetNote(_ key: Key, hash: UInt64, _ effects: inout Effects) {
    removeNote(key, hash: hash, &effects)
  }

  /// A value leaves memory; if the cacher does not have it, a copy is kept here until it has.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - copy: The value.
  ///   - limit: The largest number of copies. Others are given up, and no older copy takes their place.
  ///   - effects: The work that is left to be done.
  mutating func depart(
    _ key: Key,
    hash: UInt64,
    _ copy: ValueOutcome<Value>,
    limit: Int? = nil,
    _ effects: inout Effects
  ) {
    guard let index = dirty.index(of: key, hash: hash) else { return }
    let entry = dirty.remove(at: index)
    if let limit, departures.count >= limit {
      if overflow.count < 1024 { overflow.insert(entry.element.name) }
      refresh(entry.element.name, at: wallClockTime())
      return effects.release((entry, copy))
    }
    let departure = Departure(
      key: entry.key,
      hash: hash,
      copy: copy,
      revision: entry.element.revision,
      generation: entry.element.generation
    )
    if let old = departures.updateValue(departure, forKey: entry.element.name) {
      effects.release(old)
    }
    effects.release(entry)
  }

  /// A key is cleared.
  @usableFromInline
  mutating func remove(_ key: Key, hash: UInt64, name: String, _ effects: inout Effects) {
    removeNote(key, hash: hash, &effects)
    removeDeparture(name, &effects)
    refreshes[name] = nil
    removals[name] = nextRevision()
    // A cacher that fails at removing is asked to remove everything in the end.
    if isBounded, onlyName == nil, removals.count > Self.limit {
      effects.release(removals)
      removals = [:]
      completeRemoval = nextRevision()
    }
  }

  /// A copy that was read has been cleared before it was read; a newer value than that stays.
  ///
  /// - Returns: Whether it is to be removed.
  mutating func removeCopy(_ key: Key, hash: UInt64, name: String) -> Bool {
    guard dirty.index(of: key, hash: hash) == nil, departures[name] == nil,
      !isToBeRemoved(name)
    else { return false }
    removals[name] = nextRevision()
    return true
  }

  /// Everything is cleared, as far as it is ours.
  mutating func removeAll(_ effects: inout Effects) {
    effects.release(dirty.removeAll())
    effects.release(departures)
    departures = [:]
    refreshes = [:]
    overflow = []
    if let onlyName {
      removals[onlyName] = nextRevision()
    } else {
      completeRemoval = nextRevision()
    }
  }

  /// The value of a key has changed at its origin: a copy stored until then is out of date.
  ///
  /// It makes no difference where copies are read only to stand in for a value that cannot be fetched.
  @usableFromInline
  mutating func refresh(_ name: String, at time: Duration) {
    guard isReadFirst, !isShared else { return }
    refreshes[name] = Mark(time: max(time, newestWrite), revision: nextRevision())
    boundRefreshes()
  }

  /// The largest number of refreshes, and of copies to remove, that are noted one by one in a bounded cache.
  static var limit: Int { 1024 }

  /// Takes many refreshes for one of all values: any key can be refreshed, whether it was ever requested or not.
  private mutating func boundRefreshes() {
    guard isBounded, refreshes.count > Self.limit else { return }
    for mark in refreshes.values {
      lastRefresh = Mark(
        time: max(mark.time, lastRefresh?.time ?? .zero),
        revision: max(mark.revision, lastRefresh?.revision ?? 0)
      )
    }
    refreshes = [:]
  }

  /// Returns the names of the values that were given up since the last call.
  mutating func takeOverflow() -> Set<String> {
    defer { overflow = [] }
    return overflow
  }

  /// All values have changed at their origin.
  mutating func refreshAll(at time: Duration) {
    guard isReadFirst, !isShared else { return }
    refreshes = [:]
    lastRefresh = Mark(time: max(time, newestWrite), revision: nextRevision())
  }

  /// An entry of that time is about to be written.
  mutating func noteWrite(at time: Duration) {
    newestWrite = max(newestWrite, time)
  }

  /// A value is about to be written as of some time, though it has changed at its origin since.
  mutating func outdate(_ name: String, until time: Duration) {
    guard let mark = mark(of: name) else { return }
    refreshes[name] = Mark(time: max(mark.time, time), revision: mark.revision)
    boundRefreshes()
  }

  private mutating func removeNote(_ key: Key, hash: UInt64, _ effects: inout Effects) {
    guard let index = dirty.index(of: key, hash: hash) else { return }
    effects.release(dirty.remove(at: index))
  }

  private mutating func removeDeparture(_ name: String, _ effects: inout Effects) {
    if let old = departures.removeValue(forKey: name) { effects.release(old) }
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
    _ effects: inout Effects
  ) {
    guard let index = dirty.index(of: key, hash: hash),
      dirty.entries[index].element.revision == revision
    else { return }
    effects.release(dirty.remove(at: index))
  }

  /// A value that had left memory was written, unless there is a newer one since.
  mutating func endDeparture(_ name: String, revision: UInt64, _ effects: inout Effects) {
    guard departures[name]?.revision == revision else { return }
    removeDeparture(name, &effects)
  }

  /// A value that had left memory could not be written, and is in memory again: it is tried again with the
  /// others there.
  mutating func reclaim(_ name: String, _ departure: Departure, _ effects: inout Effects) {
    removeDeparture(name, &effects)
    removeNote(departure.key, hash: departure.hash, &effects)
    let note = Note(
      name: name,
      revision: departure.revision,
      generation: departure.generation
    )
    _ = dirty.insert(note, for: departure.key, hash: departure.hash)
  }

  /// A value that had left memory could not be written and is given up, unless there is a newer one since.
  ///
  /// An older one that the cacher may have does not take its place.
  ///
  /// - Returns: Whether it was still this one.
  mutating func loseDeparture(
    _ name: String,
    revision: UInt64,
    at time: Duration,
    _ effects: inout Effects
  ) -> Bool {
    guard departures[name]?.revision == revision else { return false }
    removeDeparture(name, &effects)
    refresh(name, at: time)
    return true
  }
}
