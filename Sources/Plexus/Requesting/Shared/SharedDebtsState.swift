/// The keys and tags of a shared cache whose changes are still to be sent to the engine, and the keys whose values are
/// newer here.
struct SharedDebtsState: Sendable {
  /// The number of keys that are recorded one by one as being ahead of the engine.
  static var limit: Int { 65_536 }

  /// Changes that have to be sent, with the revisions of these debts.
  struct Debts<Subject: Hashable & Sendable>: Sendable {
    private(set) var owed: [Subject: UInt64] = [:]
    private var lastRevision: UInt64 = 0

    /// Records changes that have to be sent.
    mutating func owe(_ subjects: some Sequence<Subject>) {
      lastRevision += 1
      for subject in subjects { owed[subject] = lastRevision }
    }

    /// Returns whether one of some changes has to be sent.
    func owes(_ subjects: some Sequence<Subject>) -> Bool {
      !owed.isEmpty && subjects.contains { owed[$0] != nil }
    }

    /// Removes debts that were paid, unless they have been renewed since.
    mutating func pay(_ paid: [Subject: UInt64]) {
      for (subject, revision) in paid where owed[subject] == revision { owed[subject] = nil }
    }
  }

  /// The keys whose entries have to be outdated.
  var outdates = Debts<String>()
  /// The tags whose entries have to be removed.
  var tagRemovals = Debts<CacheTag>()
  /// The keys whose callers were given values that the engine does not have, with the times before which entries are older.
  private var ahead: [String: Nanoseconds] = [:]
  /// The time until which every entry can be older than a value that callers were given.
  private var aheadUntil: Nanoseconds?

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
