/// Which stored answer a request is answered with: the one of its URL whose selecting header fields it has, too
/// (RFC 9111, 4.1).
///
/// The first request for a URL has an entry of its own; its answer says which fields select.
///
/// Invariants:
///
/// - Every entry that a request waits for, or that has a value, is known by its URL.
/// - Entries that have neither are at most as many as those that have, or the limit.
struct HTTPCacheState<URL: Hashable & Sendable, Key: Hashable & Sendable>: Sendable {
  private struct Resource: Sendable {
    /// The names of the fields that select, in lower case.
    var names: Set<String>
    var keys: [[String: String]: Key] = [:]
  }

  private let limit: Int
  private var threshold: Int
  private var resources: [URL: Resource] = [:]
  /// The entries of a URL, those included whose answer has not come.
  private var entries: [URL: Set<Key>] = [:]
  /// How many requests wait for an entry.
  private var waiting: [Key: Int] = [:]

  /// The number of entries that are known.
  private(set) var count = 0

  init(limit: Int = 10_000) {
    self.limit = limit
    threshold = limit
  }

  /// Returns the entry for a request.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - fields: All its header fields, by their names in lower case.
  ///   - new: The entry that it has if there is none for its fields.
  /// - Returns: The entry.
  func key(_ url: URL, fields: [String: String], new: Key) -> Key {
    guard let resource = resources[url] else { return new }
    return resource.keys[fields.selecting(resource.names)] ?? new
  }

  /// Returns the entry for a request that begins to wait for it.
  mutating func enter(_ url: URL, fields: [String: String], new: Key) -> Key {
    let key = key(url, fields: fields, new: new)
    insert(key, url)
    waiting[key, default: 0] += 1
    return key
  }

  /// Takes the end of a request.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - key: The entry.
  ///   - isEmpty: Whether the entry has no value, and no fetch can bring one.
  mutating func leave(_ url: URL, _ key: Key, isEmpty: Bool) {
    waiting[key, default: 1] -= 1
    if waiting[key] == 0 { waiting[key] = nil }
    if isEmpty, waiting[key] == nil { remove(key, url) }
  }

  /// Takes the fields that an answer names.
  ///
  /// - Parameters:
  ///   - names: The names in lower case.
  ///   - url: The URL.
  ///   - fields: The header fields of the request.
  ///   - key: The entry of the answer.
  mutating func answer(_ names: Set<String>, _ url: URL, fields: [String: String], key: Key) {
    insert(key, url)
    // What was selected by other fields cannot be told apart any more.
    if resources[url]?.names != names { resources[url] = Resource(names: names) }
    resources[url]?.keys[fields.selecting(names)] = key
  }

  /// Forgets a URL.
  ///
  /// - Returns: Its entries.
  mutating func remove(_ url: URL) -> Set<Key> {
    resources[url] = nil
    let keys = entries.removeValue(forKey: url) ?? []
    count -= keys.count
    return keys
  }

  /// Forgets everything but who waits.
  mutating func removeAll() {
    resources = [:]
    entries = [:]
    count = 0
  }

  /// The entries to look through for those that have no value any more, once in a while.
  var candidates: [(url: URL, key: Key)]? {
    guard count >= threshold else { return nil }
    return entries.flatMap { url, keys in keys.map { (url, $0) } }
  }

  /// Forgets entries that have no value, except those that a request waits for.
  mutating func prune(_ empty: [(url: URL, key: Key)]) {
    for (url, key) in empty where waiting[key] == nil { remove(key, url) }
    threshold = max(limit, 2 * count)
  }

  private mutating func insert(_ key: Key, _ url: URL) {
    if entries[url, default: []].insert(key).inserted { count += 1 }
  }

  private mutating func remove(_ key: Key, _ url: URL) {
    guard entries[url]?.remove(key) != nil else { return }
    count -= 1
    if entries[url]?.isEmpty == true {
      entries[url] = nil
      resources[url] = nil
    } else if let keys = resources[url]?.keys {
      resources[url]?.keys = keys.filter { $0.value != key }
    }
  }
}

extension [String: String] {
  /// The fields with those names.
  fileprivate func selecting(_ names: Set<String>) -> [String: String] {
    filter { names.contains($0.key) }
  }
}
