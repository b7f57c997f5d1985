/// Which stored answer a request is answered with: of those of its URL whose selecting header fields it has, too, the
/// most recent one (RFC 9111, 4 and 4.1).
///
/// The first request for a URL has an entry of its own; its answer says which fields select.
///
/// Invariants:
///
/// - Every entry that is fetched, or has a value, is returned when its URL is removed.
/// - An entry has at most one answer, and an answer that is not the most recent one for its requests has no entry.
/// - The number of entries is in proportion to the number of those.
struct HTTPCacheState<URL: Hashable & Sendable, Key: Hashable & Sendable>: Sendable {
  /// A fetch that begins.
  struct Fetch: Sendable {
    /// The entry of the request to send: the last one that the entry answers.
    let asked: Key
    fileprivate let number: Int
  }

  /// The answers whose server has named the same fields.
  private struct Variants: Sendable {
    /// The names of the fields that select, in lower case.
    let names: Set<String>
    var answers: [[String: String]: Answer] = [:]
  }

  fileprivate struct Answer: Sendable {
    let key: Key
    /// The time that the server has given it, in seconds, and its number.
    let date: Int64
    let number: Int
  }

  private struct Resource: Sendable {
    var variants: [Variants] = []
    /// The origins that redirects have led to.
    var origins: Set<String> = []
  }

  private struct Entry: Sendable {
    var asked: Key
    /// The number of the fetch in flight.
    var fetch: Int?
    /// Whether a fetch has ended since the last pruning: its value, or failure, may not be in the cache yet.
    var isRecent = false
    /// The number of answers that could not be stored, since they were for other requests than those of the entry.
    var strayCount = 0
    /// The request of the last answer.
    var answered: Key?
    /// Where the answer of the entry is found.
    var place: (names: Set<String>, selecting: [String: String])?
    var terms = Terms()
  }

  /// The number of entries up to which useless ones are not searched for.
  private let minimum: Int
  private var limit: Int
  private var resources: [URL: Resource] = [:]
  private var entries: [URL: [Key: Entry]] = [:]
  private var (lastFetch, lastAnswer) = (0, 0)

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
  ///   - isFetched: Whether the next fetch for the entry sends this request; otherwise only if it exists.
  /// - Returns: The entry.
  mutating func key(
    _ url: URL,
    fields: [String: String],
    new: Key,
    isFetched: Bool = false
  ) -> Key {
    var newest: Answer?
    for variants in resources[url]?.variants ?? [] {
      if let answer = variants.answers[fields.selecting(variants.names)],
        newest.map({ answer.isAtLeastAsNew(as: $0) }) ?? true
      {
        newest = answer
      }
    }
    let key = newest?.key ?? new
    if isFetched { expect(key, at: url, asked: new) }
    entries[url]?[key]?.asked = new
    return key
  }

  /// The next fetch for an entry sends a request.
  mutating func expect(_ key: Key, at url: URL, asked: Key) {
    insert(url, key)
    entries[url]?[key]?.asked = asked
    entries[url]?[key]?.isRecent = true
  }

  /// Returns the origins that redirects of a URL have led to, whose cookies select, too.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - new: Those of the last answer.
  /// - Returns: The origins; ``anyOrigin`` in place of many.
  func origins(_ url: URL, with new: Set<String> = []) -> Set<String> {
    let all = (resources[url]?.origins ?? []).union(new)
    return all.count > Self.maximumCount || all.contains(Self.anyOrigin) ? [Self.anyOrigin] : all
  }

  /// The name of all origins.
  static var anyOrigin: String { "*" }

  /// The request of the last answer for an entry.
  func answered(_ url: URL, _ key: Key) -> Key? { entries[url]?[key]?.answered }

  /// The terms of the answer of an entry.
  func terms(_ url: URL, _ key: Key) -> Terms { entries[url]?[key]?.terms ?? Terms() }

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

  /// The facts that an answer states about itself.
  struct Terms: Sendable {
    /// When the server has made it, in seconds.
    var date: Int64 = 0
    /// Whether it can be stored at all.
    var isStored = true
    /// Whether it is an error that is not remembered, so that the answer before it stays.
    var isPassing = false
    /// The origins that redirects have led to.
    var origins: Set<String> = []
    /// The seconds for which it had been on its way.
    var age: Int64 = 0
    /// The age up to which it is fresh.
    var lifetime: Int64?
  }

  /// Takes an answer.
  ///
  /// - Parameters:
  ///   - names: The names of the fields that select it, in lower case.
  ///   - url: The URL.
  ///   - fields: The header fields of the request.
  ///   - own: The header fields of the request that the entry was created for; `nil` if they are the same.
  ///   - key: The entry of the answer.
  ///   - terms: What it says about itself.
  ///   - fetch: The fetch; its answer is not stored after its URL was removed.
  /// - Returns: Whether the answer can be stored in the entry; otherwise it is for its callers alone.
  @discardableResult
  mutating func answer(
    _ names: Set<String>,
    _ url: URL,
    fields: [String: String],
    own: [String: String]? = nil,
    key: Key,
    terms: Terms = Terms(),
    fetch: Fetch? = nil
  ) -> Bool {
    if let fetch, entries[url]?[key]?.fetch != fetch.number { return false }
    insert(url, key)
    entries[url]?[key]?.answered = fetch?.asked
    resources[url, default: Resource()].origins = origins(url, with: terms.origins)
    let selecting = fields.selecting(names)
    let isForEntry = own.map { $0.selecting(names) == selecting } ?? true
    if !isForEntry { entries[url]?[key]?.strayCount += 1 }
    if terms.isPassing { return false }
    // The answer before it is replaced, or removed.
    forget(entries[url]?[key]?.place, of: url, key)
    entries[url]?[key]?.place = nil
    guard isForEntry else { return false }
    lastAnswer += 1
    let answer = Answer(key: key, date: terms.date, number: lastAnswer)
    guard terms.isStored, store(answer, url, names, selecting) else { return false }
    entries[url]?[key]?.place = (names, selecting)
    entries[url]?[key]?.terms = terms
    return true
  }

  /// Stores an answer unless there is a more recent one for the same requests.
  private mutating func store(
    _ answer: Answer,
    _ url: URL,
    _ names: Set<String>,
    _ selecting: [String: String]
  ) -> Bool {
    var variants = resources[url]?.variants ?? []
    if let index = variants.firstIndex(where: { $0.names == names }) {
      if let other = variants[index].answers[selecting], !answer.isAtLeastAsNew(as: other) {
        return false
      }
      variants[index].answers[selecting] = answer
    } else {
      // A server that names other fields each time must not slow down the search.
      if variants.count >= Self.maximumCount { variants.removeFirst() }
      variants.append(Variants(names: names, answers: [selecting: answer]))
    }
    resources[url]?.variants = variants
    return true
  }

  /// The largest number of origins, and of different sets of names, of one URL.
  private static var maximumCount: Int { 8 }

  private mutating func forget(
    _ place: (names: Set<String>, selecting: [String: String])?,
    of url: URL,
    _ key: Key
  ) {
    guard let place,
      let index = resources[url]?.variants.firstIndex(where: { $0.names == place.names }),
      resources[url]?.variants[index].answers[place.selecting]?.key == key
    else { return }
    resources[url]?.variants[index].answers[place.selecting] = nil
    if resources[url]?.variants[index].answers.isEmpty == true {
      resources[url]?.variants.remove(at: index)
    }
  }

  /// Forgets a URL.
  ///
  /// - Parameter url: The URL.
  /// - Returns: Its entries.
  mutating func remove(_ url: URL) -> Set<Key> {
    resources[url] = nil
    let removed = entries.removeValue(forKey: url) ?? [:]
    count -= removed.count
    return Set(removed.keys)
  }

  /// Forgets the answers of a URL that are not more recent than that of an entry.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - key: The entry.
  /// - Returns: Their entries, of which none has a fetch in flight.
  mutating func removeOlder(_ url: URL, than key: Key) -> Set<Key> {
    guard let own = entries[url]?[key]?.place.flatMap({ answer(at: $0, of: url) }) else {
      return []
    }
    var removed: Set<Key> = []
    for (other, entry) in entries[url] ?? [:] where other != key && entry.fetch == nil {
      if let place = entry.place, let answer = answer(at: place, of: url) {
        guard answer.key != other || own.isAtLeastAsNew(as: answer) else { continue }
        if answer.key == other { forget(place, of: url, other) }
      }
      entries[url]?[other] = nil
      count -= 1
      removed.insert(other)
    }
    return removed
  }

  private func answer(
    at place: (names: Set<String>, selecting: [String: String]),
    of url: URL
  ) -> Answer? {
    resources[url]?.variants.first { $0.names == place.names }?.answers[place.selecting]
  }

  mutating func removeAll() {
    // The numbers continue: a late fetch must not have the number of a new one.
    (resources, entries, count, limit) = ([:], [:], 0, minimum)
  }

  /// Whether there are so many entries that ``prune(keeping:)`` is due.
  var isFull: Bool { count > limit }

  /// Forgets the entries that have neither a value nor a fetch.
  ///
  /// - Parameter keys: The entries with a value.
  /// - Returns: The entries that are forgotten, which may have a remembered failure.
  @discardableResult
  mutating func prune(keeping keys: Set<Key>) -> [Key] {
    var forgotten: [Key] = []
    count = 0
    var used = 0
    for (url, old) in entries {
      var kept = old.filter { keys.contains($0.key) || $0.value.fetch != nil || $0.value.isRecent }
      for (key, entry) in old where kept[key] == nil {
        forget(entry.place, of: url, key)
        forgotten.append(key)
      }
      for key in kept.keys { kept[key]?.isRecent = false }
      entries[url] = kept.isEmpty ? nil : kept
      // What remains without an entry would never be found again.
      if kept.isEmpty { resources[url] = nil }
      count += kept.count
      used += kept.count { keys.contains($0.key) || $0.value.fetch != nil }
    }
    limit = count + max(minimum, used)
    return forgotten
  }

  private mutating func insert(_ url: URL, _ key: Key) {
    guard entries[url]?[key] == nil else { return }
    entries[url, default: [:]][key] = Entry(asked: key)
    count += 1
  }
}

extension HTTPCacheState.Answer {
  fileprivate func isAtLeastAsNew(as other: Self) -> Bool {
    date == other.date ? number >= other.number : date > other.date
  }
}

extension [String: String] {
  /// The fields with those names.
  fileprivate func selecting(_ names: Set<String>) -> [String: String] {
    filter { names.contains($0.key) }
  }
}
