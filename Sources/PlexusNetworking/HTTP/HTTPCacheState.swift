/// Which stored answer a request is answered with: the one of its URL whose selecting header fields it has, too
/// (RFC 9111, 4.1).
///
/// The first request for a URL has an entry of its own; its answer says which fields select.
struct HTTPCacheState<URL: Hashable & Sendable, Key: Hashable & Sendable>: Sendable {
  private struct Resource: Sendable {
    /// The names of the fields that select, in lower case.
    var names: Set<String>
    var keys: [[String: String]: Key] = [:]
  }

  /// The number of URLs after which what is known of all is forgotten: then they are fetched again.
  private let limit: Int
  private var resources: [URL: Resource] = [:]
  /// The entries of a URL, those included whose answer has not come.
  private var entries: [URL: Set<Key>] = [:]

  init(limit: Int = 10_000) {
    self.limit = limit
  }

  /// The number of URLs of which something is known.
  var count: Int { entries.count }

  /// Returns the entry for a request.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - fields: All its header fields, by their names in lower case.
  ///   - new: The entry that it has if there is none for its fields.
  /// - Returns: The entry.
  mutating func key(_ url: URL, fields: [String: String], new: Key) -> Key {
    if let resource = resources[url], let key = resource.keys[fields.selecting(resource.names)] {
      return key
    }
    if entries[url] == nil, entries.count >= limit { self = HTTPCacheState(limit: limit) }
    entries[url, default: []].insert(new)
    return new
  }

  /// Takes the fields that an answer names.
  ///
  /// - Parameters:
  ///   - names: The names in lower case.
  ///   - url: The URL.
  ///   - fields: The header fields of the request.
  ///   - key: The entry of the answer.
  mutating func answer(_ names: Set<String>, _ url: URL, fields: [String: String], key: Key) {
    entries[url, default: []].insert(key)
    // What was selected by other fields cannot be told apart any more.
    if resources[url]?.names != names { resources[url] = Resource(names: names) }
    resources[url]?.keys[fields.selecting(names)] = key
  }

  /// Forgets a URL.
  ///
  /// - Returns: Its entries.
  mutating func remove(_ url: URL) -> Set<Key> {
    resources[url] = nil
    return entries.removeValue(forKey: url) ?? []
  }

  mutating func removeAll() {
    self = HTTPCacheState(limit: limit)
  }
}

extension [String: String] {
  /// The fields with those names.
  fileprivate func selecting(_ names: Set<String>) -> [String: String] {
    filter { names.contains($0.key) }
  }
}
