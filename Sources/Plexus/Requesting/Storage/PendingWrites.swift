/// The changes of the keys of one shard that are still to be written to the cacher.
///
/// They change together with the keys, under the same lock, so that a cleared value is not written
/// afterwards.
///
/// Nothing is released here: replaced and removed objects are passed to ``CacheEffects``.
@usableFromInline
struct PendingWrites<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// A value in memory that the cacher does not have.
  struct Note: Sendable {
    /// The name of the key in the cacher.
    let name: String
    let revision: UInt64
    /// The start of the fetch of the value.
    var start = FetchStart()
    /// Whether another process can have changed the key since the value was stored.
    var isContested = false
  }

  /// A value that left memory before it was written.
  struct Departure: Sendable {
    let key: Key
    let hash: UInt64
    let copy: ValueOutcome<Value>
    var note: Note
  }

  /// The result of a look-up that needs no call of the cacher.
  enum Lookup: Sendable {
    /// The copy waits to be written, and can be outdated; it is as old as the start of its fetch.
    case departing(ValueOutcome<Value>, isOutdated: Bool, start: FetchStart)
    /// The copy must not be used, usually because it has to be removed.
    case removed
    /// The copy can be in the cacher; it is outdated if it was stored at this time or before.
    case elsewhere(outdatedUntil: Duration?)
  }

  /// The point from which on a value is up to date, in two orders: by the wall clock, which other
  /// processes share, and by the changes here, which depend on no clock.
  struct Mark: Sendable {
    var time: Duration
    var revision: UInt64
  }

  /// Whether stored copies are read before anything is fetched.
  @usableFromInline let isReadFirst: Bool
  /// The only name, if the cache has a single key: no other entry must be removed then.
  let onlyName: String?
  /// Whether the cacher is shared: fetched values are then stored by their leases, and refreshes recorded elsewhere.
  @usableFromInline let isShared: Bool
  /// Whether the cache has a capacity, so that the records here are bounded, too.
  let isBounded: Bool
  /// The number of reasons not to read stored copies.
  var readBlocks = 0
  private(set) var dirty = KeyTable<Key, Note>()
  /// The starts of the fetches of the values in memory, with the indices of their entries in the table.
  ///
  /// An update keeps the age of the value that it changes, also if the cacher has that value.
  private var starts: ContiguousArray<FetchStart> = []
  private(set) var departures: [String: Departure] = [:]
  /// The names of the copies to remove.
  private(set) var removals: [String: UInt64] = [:]
  /// Whether all copies are to be removed.
  private(set) var completeRemoval: UInt64?
  private(set) var refreshes: [String: Mark] = [:]
  /// The names of values that left memory and were dropped, because too many others waited to be written.
  private(set) var overflow: Set<String> = []
  private var lastRefresh: Mark?
  /// The latest time of all entries written here: the clock can have been set back since.
  private(set) var newestWrite = Duration.zero
  private var lastRevision: UInt64 = 0

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

  /// Whether values that left memory wait to be written.
  var hasDepartures: Bool { !departures.isEmpty }

  /// Whether copies are waiting to be removed.
  var hasRemovals: Bool { !removals.isEmpty || completeRemoval != nil }

  /// Looks up the stored copy of a key.
  func lookUp(_ name: String) -> Lookup {
    if let departure = departures[name] {
      let isOutdated = isOutdated(name, revision: departure.note.revision)
      return .departing(departure.copy, isOutdated: isOutdated, start: departure.note.start)
    }
    if readBlocks > 0 || isToBeRemoved(name) { return .removed }
    return .elsewhere(outdatedUntil: mark(of: name)?.time)
  }

  /// Returns whether the stored copy of a name has to be removed, which would also remove a value that is written now.
  func isToBeRemoved(_ name: String) -> Bool {
    completeRemoval != nil || removals[name] != nil
  }

  /// Returns whether the cacher has yet to write or remove the entry of a name.
  func owes(_ key: Key, hash: UInt64, name: String) -> Bool {
    isToBeRemoved(name) || departures[name] != nil || isUnwritten(key, hash: hash)
  }

  /// Returns whether the cacher does not have the value in memory of a key.
  func isUnwritten(_ key: Key, hash: UInt64) -> Bool {
    dirty.index(of: key, hash: hash) != nil
  }

  /// Returns whether the value of a revision has changed at its origin since.
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

  // MARK: - Following the table

  /// Adds an entry without a value.
  @usableFromInline
  mutating func append() { starts.append(FetchStart()) }

  /// Removes an entry; the last one takes its index.
  @usableFromInline
  mutating func remove(at index: Int) {
    starts.swapAt(index, starts.count - 1)
    starts.removeLast()
  }

  /// Removes the starts of all fetches.
  mutating func removeAllStarts() { starts = [] }

  /// Returns the start of the fetch of the value at an index.
  @usableFromInline
  func start(at index: Int) -> FetchStart { starts[index] }

  /// Sets the start of the fetch of the value at an index.
  @usableFromInline
  mutating func setStart(_ start: FetchStart, at index: Int) { starts[index] = start }

  // MARK: - Changes

  /// Records a new value in memory.
  ///
  /// It is the newest if it satisfies every refresh; otherwise it was fetched before one.
  @usableFromInline
  mutating func noteValue(
    _ key: Key,
    hash: UInt64,
    name: String,
    start: FetchStart = FetchStart(),
    isNewest: Bool,
    isContested: Bool = false,
    _ effects: inout CacheEffects
  ) {
    removeNote(key, hash: hash, &effects)
    let note = Note(
      name: name,
      revision: nextRevision(),
      start: start,
      isContested: isContested
    )
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

  /// Records that another process can have changed a key since its unwritten value was stored.
  @usableFromInline
  mutating func contest(_ key: Key, hash: UInt64, name: String?) {
    if let index = dirty.index(of: key, hash: hash) {
      dirty.entries[index].element.isContested = true
    }
    if let name { departures[name]?.note.isContested = true }
  }

  /// Returns whether another process can have changed a key since its unwritten value was stored.
  @usableFromInline
  func isContested(_ key: Key, hash: UInt64, name: String) -> Bool {
    if let index = dirty.index(of: key, hash: hash), dirty.entries[index].element.isContested {
      return true
    }
    return departures[name]?.note.isContested == true
  }

  /// Records that other processes can have changed all keys since their unwritten values were stored.
  mutating func contestAll() {
    for index in dirty.entries.indices { dirty.entries[index].element.isContested = true }
    for name in departures.keys { departures[name]?.note.isContested = true }
  }

  /// Returns the note of an unwritten value, unless there is a newer one.
  func note(_ key: Key, hash: UInt64, name: String, revision: UInt64) -> Note? {
    let notes = [
      dirty.index(of: key, hash: hash).map { dirty.entries[$0].element }, departures[name]?.note,
    ]
    return notes.compactMap(\.self).first { $0.revision == revision }
  }

  /// Keeps a copy of a value that leaves memory until it is written, if the cacher does not have it.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - copy: The value.
  ///   - limit: The largest number of copies. Further ones are dropped, and no older copy takes their place.
  ///   - effects: Receives the work that remains.
  mutating func depart(
    _ key: Key,
    hash: UInt64,
    _ copy: ValueOutcome<Value>,
    limit: Int? = nil,
    _ effects: inout CacheEffects
  ) {
    guard let index = dirty.index(of: key, hash: hash) else { return }
    let entry = dirty.remove(at: index)
    if let limit, departures.count >= limit {
      if overflow.count < 1024 { overflow.insert(entry.element.name) }
      refresh(entry.element.name, at: wallClockTime())
      return effects.release((entry, copy))
    }
    let departure = Departure(key: entry.key, hash: hash, copy: copy, note: entry.element)
    if let old = departures.updateValue(departure, forKey: entry.element.name) {
      effects.release(old)
    }
    effects.release(entry)
  }

  /// Records that a key is cleared.
  @usableFromInline
  mutating func remove(_ key: Key, hash: UInt64, name: String, _ effects: inout CacheEffects) {
    removeNote(key, hash: hash, &effects)
    removeDeparture(name, &effects)
    refreshes[name] = nil
    removals[name] = nextRevision()
    // When a cacher keeps failing, many removals are replaced by the removal of everything.
    if isBounded, onlyName == nil, removals.count > Self.limit {
      effects.release(removals)
      removals = [:]
      completeRemoval = nextRevision()
    }
  }

  /// Records the removal of a copy that was cleared before it was read, unless there is a newer value.
  ///
  /// - Returns: Whether it is to be removed.
  mutating func removeCopy(_ key: Key, hash: UInt64, name: String) -> Bool {
    guard dirty.index(of: key, hash: hash) == nil, departures[name] == nil,
      !isToBeRemoved(name)
    else { return false }
    removals[name] = nextRevision()
    return true
  }

  /// Records that all values of the cache are cleared.
  mutating func removeAll(_ effects: inout CacheEffects) {
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

  /// Marks the value of a key as changed at its origin: a copy that was stored until then is outdated.
  ///
  /// Nothing is recorded if copies are only read as fallbacks, or if the cacher is shared.
  @usableFromInline
  mutating func refresh(_ name: String, at time: Duration) {
    guard isReadFirst, !isShared else { return }
    refreshes[name] = Mark(time: max(time, newestWrite), revision: nextRevision())
    boundRefreshes()
  }

  /// The largest number of refreshes, and of copies to remove, that are recorded one by one in a bounded cache.
  static var limit: Int { 1024 }

  /// Replaces many refreshes by one of all values: any key can be refreshed, even one that was never requested.
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

  /// Returns the names of the values that were dropped since the last call.
  mutating func takeOverflow() -> Set<String> {
    defer { overflow = [] }
    return overflow
  }

  /// Marks all values as changed at their origin.
  mutating func refreshAll(at time: Duration) {
    guard isReadFirst, !isShared else { return }
    refreshes = [:]
    lastRefresh = Mark(time: max(time, newestWrite), revision: nextRevision())
  }

  /// Records the time of an entry that is about to be written.
  mutating func noteWrite(at time: Duration) {
    newestWrite = max(newestWrite, time)
  }

  /// Extends the refresh of a name to the time of a value that is about to be written and does not satisfy it.
  mutating func outdate(_ name: String, until time: Duration) {
    guard let mark = mark(of: name) else { return }
    refreshes[name] = Mark(time: max(mark.time, time), revision: mark.revision)
    boundRefreshes()
  }

  /// Removes the record of a value that is replaced by another one.
  mutating func removeNote(_ key: Key, hash: UInt64, _ effects: inout CacheEffects) {
    guard let index = dirty.index(of: key, hash: hash) else { return }
    effects.release(dirty.remove(at: index))
  }

  private mutating func removeDeparture(_ name: String, _ effects: inout CacheEffects) {
    if let old = departures.removeValue(forKey: name) { effects.release(old) }
  }

  // MARK: - Results of the cacher

  /// Ends the removals of copies, unless newer removals are pending.
  mutating func confirmRemoval(of names: some Sequence<(name: String, revision: UInt64)>) {
    for (name, revision) in names where removals[name] == revision { removals[name] = nil }
  }

  /// Ends the removal of all copies, and earlier removals by name.
  mutating func confirmCompleteRemoval(_ revision: UInt64) {
    if completeRemoval == revision { completeRemoval = nil }
    removals = removals.filter { $0.value > revision }
  }

  /// Removes the record of a value that was written, unless there is a newer one.
  mutating func confirm(
    _ key: Key,
    hash: UInt64,
    revision: UInt64,
    _ effects: inout CacheEffects
  ) {
    guard let index = dirty.index(of: key, hash: hash),
      dirty.entries[index].element.revision == revision
    else { return }
    effects.release(dirty.remove(at: index))
  }

  /// Removes a value that had left memory and was written, unless there is a newer one.
  mutating func endDeparture(_ name: String, revision: UInt64, _ effects: inout CacheEffects) {
    guard departures[name]?.note.revision == revision else { return }
    removeDeparture(name, &effects)
  }

  /// Records a value that could not be written, and is in memory again, as one to be written with the other
  /// values in memory.
  mutating func reclaim(_ departure: Departure, _ effects: inout CacheEffects) {
    removeDeparture(departure.note.name, &effects)
    removeNote(departure.key, hash: departure.hash, &effects)
    _ = dirty.insert(departure.note, for: departure.key, hash: departure.hash)
  }

  /// Drops a value that had left memory and could not be written, unless there is a newer one.
  ///
  /// An older copy in the cacher does not take its place.
  ///
  /// - Returns: Whether the value was dropped.
  mutating func loseDeparture(
    _ name: String,
    revision: UInt64,
    at time: Duration,
    _ effects: inout CacheEffects
  ) -> Bool {
    guard departures[name]?.note.revision == revision else { return false }
    removeDeparture(name, &effects)
    refresh(name, at: time)
    return true
  }
}
