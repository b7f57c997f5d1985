/// Which stored answer a request is answered with: the one of its URL whose selecting header fields it has, too
/// (RFC 9111, 4.1).
///
/// The first request for a URL has an entry of its own; its answer says which fields select.
///
/// Invariants:
///
/// - Every entry that is fetched, or has a value, is returned when its URL is removed.
/// - The number of entries is in proportion to the number of those.
struct HTTPCacheState<URL: Hashable & Sendable, Key: Hashable & Sendable>: Sendable {
  /// A fetch that begins.
  struct Fetch: Sendable {
    /// The entry of the request to send: the last one that the entry answers.
    let asked: Key
    fileprivate let number: Int
  }

  private struct Resource: Sendable {
    /// The names of the fields that select, in lower case.
    var names: Set<String>
    var keys: [[String: String]: Key] = [:]
  }

  private struct Entry: Sendable {
    var asked: Key
    /// The number of the fetch in flight.
    var fetch: Int?
    /// Whether a fetch has ended since the last pruning: its value may not be in the cache yet.
    var isRecent = false
    /// The number of answers that could not be stored, since they were for other requests than those of the entry.
    var strayCount = 0
  }

  /// The number of entries up to which useless ones are not searched for.
  private let minimum: Int
  private var limit: Int
  private var resources: [URL: Resource] = [:]
  private var entries: [URL: [Key: Entry]] = [:]
  private var lastFetch = 0

  /// The number of entries.
  private(set) var count = 0

  init(limit: Int = 10_000) {
    minimum = limit
    self.limit = limit
  }

  /// Returns the entry for a request.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - fields: All its header fields, by their names in lower case.
  ///   - new: The entry that it has if there is none for its fields.
  /// - Returns: The entry.
  mutating func key(_ url: URL, fields: [String: String], new: Key) -> Key {
    let resource = resources[url]
    let key = resource.flatMap { $0.keys[fields.selecting($0.names)] } ?? new
    entries[url]?[key]?.asked = new
    return key
  }

  /// The number of answers so far that callers of an entry have received and that are for other requests.
  func strayCount(_ url: URL, _ key: Key) -> Int {
    entries[url]?[key]?.strayCount ?? 0
  }

  /// A fetch for an entry begins; ``end(_:of:_:)`` must follow.
  mutating func begin(_ url: URL, _ key: Key) -> Fetch {
    lastFetch += 1
    insert(url, key)
    entries[url]?[key]?.fetch = lastFetch
    return Fetch(asked: entries[url]?[key]?.asked ?? key, number: lastFetch)
  }

  /// A fetch has ended.
  mutating func end(_ fetch: Fetch, of url: URL, _ key: Key) {
    // After a removal, another fetch may have begun.
    guard entries[url]?[key]?.fetch == fetch.number else { return }
    entries[url]?[key]?.fetch = nil
    entries[url]?[key]?.isRecent = true
  }

  /// Takes the fields that an answer names.
  ///
  /// - Parameters:
  ///   - names: The names in lower case.
  ///   - url: The URL.
  ///   - fields: The header fields of the request.
  ///   - own: The header fields of the request that the entry was created for; `nil` if they are the same.
  ///   - key: The entry of the answer.
  /// - Returns: Whether the answer can be stored in the entry; otherwise its request has another one from now on.
  @discardableResult
  mutating func answer(
    _ names: Set<String>,
    _ url: URL,
    fields: [String: String],
    own: [String: String]? = nil,
    key: Key
  ) -> Bool {
    insert(url, key)
    // Values that were selected by other fields can no longer be distinguished.
    if resources[url]?.names != names { resources[url] = Resource(names: names) }
    let selecting = fields.selecting(names)
    guard own.map({ $0.selecting(names) == selecting }) ?? true else {
      entries[url]?[key]?.strayCount += 1
      return false
    }
    resources[url]?.keys[selecting] = key
    return true
  }

  /// Forgets a URL.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - kept: An entry that keeps its value.
  /// - Returns: The other entries.
  mutating func remove(_ url: URL, except kept: Key? = nil) -> Set<Key> {
    resources[url] = nil
    let removed = entries.removeValue(forKey: url) ?? [:]
    let entry = kept.flatMap { removed[$0] }
    if let kept, let entry { entries[url] = [kept: entry] }
    count -= removed.count - (entry == nil ? 0 : 1)
    return Set(removed.keys.filter { $0 != kept })
  }

  mutating func removeAll() {
    self = HTTPCacheState(limit: minimum)
  }

  /// Whether there are so many entries that ``prune(keeping:)`` is due.
  var isFull: Bool { count > limit }

  /// Forgets the entries that have neither a value nor a fetch.
  ///
  /// - Parameter keys: The entries with a value.
  mutating func prune(keeping keys: Set<Key>) {
    count = 0
    var used = 0
    for (url, old) in entries {
      let kept = old.filter { keys.contains($0.key) || $0.value.fetch != nil || $0.value.isRecent }
      entries[url] =
        kept.isEmpty
        ? nil
        : kept.mapValues { entry in
          Entry(asked: entry.asked, fetch: entry.fetch, strayCount: entry.strayCount)
        }
      if let keys = resources[url]?.keys.filter({ kept[$0.value] != nil }), !keys.isEmpty {
        resources[url]?.keys = keys
      } else {
        resources[url] = nil
      }
      count += kept.count
      used += kept.count { keys.contains($0.key) || $0.value.fetch != nil }
    }
    limit = count + max(minimum, used)
  }

  private mutating func insert(_ url: URL, _ key: Key) {
    guard entries[url]?[key] == nil else { return }
    entries[url, default: [:]][key] = Entry(asked: key)
    count += 1
  }
}

extension [String: String] {
  /// The fields with those names.
  fileprivate func selecting(_ names: Set<String>) -> [String: String] {
    filter { names.contains($0.key) }
  }
}
