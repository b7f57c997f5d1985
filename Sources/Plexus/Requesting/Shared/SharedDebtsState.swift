/// The keys of a shared cache whose changes are still to be sent to the engine, or whose values are newer here.
struct SharedDebtsState: Sendable {
  /// The number of keys that are recorded one by one as being ahead of the engine.
  static var limit: Int { 65_536 }

  /// The keys whose entries have to be outdated.
  private var outdates: [String: UInt64] = [:]
  /// The tags whose entries have to be removed, with the revisions of these debts.
  private(set) var owedTags: [CacheTag: UInt64] = [:]
  private var lastRevision: UInt64 = 0
  /// The keys whose callers were given values that the engine does not have, with the times before which entries are older.
  private var ahead: [String: Nanoseconds] = [:]
  /// The time until which every entry can be older than a value that callers were given.
  private var aheadUntil: Nanoseconds?

  /// Records that the entry of a key has to be outdated.
  mutating func outdate(_ names: some Sequence<String>) {
    lastRevision += 1
    for name in names { outdates[name] = lastRevision }
  }

  /// Returns whether one of some entries has to be outdated.
  func hasOutdates(of names: some Sequence<String>) -> Bool {
    !outdates.isEmpty && names.contains { outdates[$0] != nil }
  }

  /// The keys whose entries have to be outdated, with the revisions of these debts.
  var owed: [String: UInt64] { outdates }

  /// Removes debts that were paid, unless they have been renewed since.
  mutating func settle(_ paid: [String: UInt64]) {
    for (name, revision) in paid where outdates[name] == revision { outdates[name] = nil }
  }

  /// Records that the entries with some tags have to be removed.
  mutating func remove(_ tags: Set<CacheTag>) {
    lastRevision += 1
    for tag in tags { owedTags[tag] = lastRevision }
  }

  /// Removes debts that were paid, unless they have been renewed since.
  mutating func settle(tags paid: [CacheTag: UInt64]) {
    for (tag, revision) in paid where owedTags[tag] == revision { owedTags[tag] = nil }
  }

  /// Records that callers were given a value that the engine does not have.
  ///
  /// - Parameters:
  ///   - name: The name of the key.
  ///   - now: The present time.
  ///   - time: The time before which entries were stored that can be older than the value.
  mutating func goAhead(_ name: String, at now: Nanoseconds, of time: Nanoseconds = .max) {
    ahead[name] = max(ahead[name] ?? .min, time)
    guard ahead.count > Self.limit else { return }
    ahead = [:]
    aheadUntil = now
  }

  /// Records that every entry stored until now is outdated for this process.
  mutating func goAhead(at now: Nanoseconds) {
    ahead = [:]
    aheadUntil = now
  }

  /// Returns whether an entry can be older than a value that callers were given.
  func isBehind(_ name: String, storedAt: Nanoseconds) -> Bool {
    ahead[name].map { storedAt < $0 } ?? false || aheadUntil.map { storedAt <= $0 } ?? false
  }

  /// Records that the engine has a value that is newer than all that callers were given.
  mutating func catchUp(_ name: String) {
    ahead[name] = nil
  }
}
