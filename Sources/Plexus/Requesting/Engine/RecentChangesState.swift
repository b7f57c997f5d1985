/// The keys that have changed during the calls in progress, each of which can bring the value of any key.
///
/// A change is recorded with the number of the last call that had begun: it concerns that call and all calls before it that
/// are in progress. Changes are recorded one by one up to a limit, and only while calls are in progress. Beyond the limit,
/// everything counts as changed: this costs values that could have been kept, and never keeps an outdated one.
///
/// Nothing is released here: keys are returned, since releasing them can run code of the user.
@usableFromInline
struct RecentChangesState<Key: Hashable & Sendable>: Sendable {
  /// Keys to be released with no lock held.
  @usableFromInline typealias Released = ContiguousArray<KeyTable<Key, UInt64>.Entry>

  /// The largest number of keys, and of tags, that are recorded one by one.
  static var limit: Int { 1024 }
  /// The largest number of keys whose values were kept, which are recorded besides.
  static var keptLimit: Int { 65_536 }

  /// The numbers of the calls in progress, ascending.
  private var calls: [UInt64] = []
  private var lastCall: UInt64 = 0
  private var keys = KeyTable<Key, UInt64>()
  /// The number of the keys whose values were kept.
  private var keptCount = 0
  private var tags: [CacheTag: UInt64] = [:]
  /// The last call that had begun when everything changed.
  private var everything: UInt64 = 0
  /// The call that has kept more values than are recorded, and the last call that had begun then: to all other calls, that
  /// is a change of everything.
  private var keeper: (call: UInt64, others: UInt64)?

  init() {}

  /// Whether calls are in progress.
  var isRecording: Bool { !calls.isEmpty }

  /// The number of keys and tags that are recorded.
  var count: Int { keys.count + tags.count }

  /// Begins a call.
  ///
  /// - Returns: Its number.
  mutating func begin() -> UInt64 {
    lastCall += 1
    calls.append(lastCall)
    return lastCall
  }

  /// Ends a call.
  mutating func end(_ call: UInt64) -> Released {
    calls.removeAll { $0 == call }
    return calls.isEmpty ? removeAll() : []
  }

  /// Records that a key has changed.
  mutating func change(_ key: Key, hash: UInt64) -> Released {
    guard isRecording else { return [] }
    if let index = keys.index(of: key, hash: hash) {
      keys.entries[index].element = lastCall
      return []
    }
    guard keys.count - keptCount < Self.limit else { return changeAll() }
    _ = keys.insert(lastCall, for: key, hash: hash)
    return []
  }

  /// Records that a call in progress has kept the value of a key, which matters to the other calls only.
  ///
  /// These keys do not count towards the limit of changes: a large answer would end its own recording.
  mutating func keep(_ key: Key, hash: UInt64, by call: UInt64) -> Released {
    guard calls.count > 1 else { return [] }
    if let index = keys.index(of: key, hash: hash) {
      keys.entries[index].element = lastCall
      return []
    }
    guard keptCount < Self.keptLimit else {
      guard keeper.map({ $0.call == call }) ?? true else { return changeAll() }
      keeper = (call, lastCall)
      return []
    }
    _ = keys.insert(lastCall, for: key, hash: hash)
    keptCount += 1
    return []
  }

  /// Records that the keys with one of some tags have changed.
  mutating func change(_ changed: Set<CacheTag>) -> Released {
    guard isRecording else { return [] }
    for tag in changed { tags[tag] = lastCall }
    return tags.count > Self.limit ? changeAll() : []
  }

  /// Records that all keys have changed.
  mutating func changeAll() -> Released {
    guard isRecording else { return [] }
    everything = lastCall
    return removeAll()
  }

  private mutating func removeAll() -> Released {
    tags = [:]
    keeper = nil
    keptCount = 0
    return keys.removeAll()
  }

  /// Returns whether a key has changed since a call in progress has begun.
  func hasChanged(_ key: Key, hash: UInt64, _ ownTags: [CacheTag], since call: UInt64) -> Bool {
    if everything >= call { return true }
    if let keeper, keeper.call != call, keeper.others >= call { return true }
    if let index = keys.index(of: key, hash: hash), keys.entries[index].element >= call {
      return true
    }
    return ownTags.contains { tags[$0] ?? 0 >= call }
  }
}
