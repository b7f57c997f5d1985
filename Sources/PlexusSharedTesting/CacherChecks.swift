internal import Plexus

/// The checks of the conformance suite of cachers, with two instances over one empty storage.
struct CacherChecks: Sendable {
  typealias Value = CacherConformance.Value
  typealias Entry = CacheEntry<Value>

  let rule: CacherConformance.Rule
  let a: any Cacher<Value>
  let b: any Cacher<Value>

  private func require(_ condition: Bool, _ expectation: String) throws {
    guard condition else {
      throw CacherConformance.Violation(rule: rule, description: expectation)
    }
  }

  private func entry(_ text: String) -> Entry {
    CacheEntry(value: Value(text), storedAt: .seconds(1))
  }

  /// An entry for each key, whose value names it.
  private func entries(_ keys: some Sequence<String>) -> [String: Entry] {
    Dictionary(uniqueKeysWithValues: keys.map { ($0, entry("of \($0)")) })
  }

  private func value(_ cacher: any Cacher<Value>, _ key: String = "key") async throws -> String? {
    try await cacher.entry(forKey: key)?.value.text
  }

  /// Returns the keys that both instances have.
  private func present(_ keys: some Sequence<String>) async throws -> Set<String> {
    var present: Set<String> = []
    for key in keys {
      let (first, second) = (try await value(a, key), try await value(b, key))
      try require(first == second, "Both instances have the same entries.")
      try require(first == nil || first == "of \(key)", "An entry is that of its key.")
      if first != nil { present.insert(key) }
    }
    return present
  }

  /// Stores an entry, and reads it by both instances.
  private func requireKept(_ entry: Entry, _ part: String) async throws {
    try await a.store(["key": entry])
    for cacher in [a, b] {
      let kept = try await cacher.entry(forKey: "key")
      try require(kept?.value == entry.value, "The value of an entry is kept.")
      try require(kept == entry, part)
    }
  }

  // MARK: - Entries

  func missing() async throws {
    try await a.removeEntries(forKeys: [])
    try await a.store([:])
    try require(try await value(a) == nil, "A key without an entry is a miss.")
    try await a.removeEntries(forKeys: ["key"])
    try await a.removeEntries(withPrefix: "k")
    try await a.removeAllEntries()
    try require(try await value(b) == nil, "A key that was removed is a miss.")
  }

  func wholeEntries() async throws {
    var whole = CacheEntry(
      value: Value("\u{0}\"\\/😀\n"),
      storedAt: .seconds(1_700_000_000),
      validator: "W/\"1\"",
      directives: CacheDirectives(
        timeToLive: .seconds(1),
        staleWhileRevalidate: .seconds(2),
        staleIfError: .seconds(3),
        requiresRevalidation: true
      )
    )
    try await requireKept(whole, "The validator and the directives are kept.")
    whole.validator = ""
    try await requireKept(whole, "An empty validator is one.")
    try await requireKept(entry("plain"), "An entry without them has none.")
  }

  func exactDates() async throws {
    let attosecond = Duration(secondsComponent: 0, attosecondsComponent: 1)
    let now = Duration.seconds(1_700_000_000)
    let times: [Duration] = [
      .zero, .seconds(-5), now + .nanoseconds(1), now * 50, .seconds(2) - attosecond,
      .seconds(-1) - attosecond,
    ]
    for time in times {
      try await requireKept(
        CacheEntry(value: Value("value"), storedAt: time),
        "The time \(time) is kept exactly."
      )
    }
  }

  func exactDirectives() async throws {
    let times: [Duration?] = [
      nil, .zero, .milliseconds(1_500), .seconds(31_536_000),
      Duration(secondsComponent: 0, attosecondsComponent: 1),
    ]
    for time in times {
      for field in [
        \CacheDirectives.timeToLive, \.staleWhileRevalidate, \.staleIfError,
      ] as [WritableKeyPath<CacheDirectives, Duration?> & Sendable] {
        var entry = entry("value")
        entry.directives[keyPath: field] = time
        try await requireKept(
          entry,
          "The time \(time.map { "\($0)" } ?? "nil") of a directive is kept exactly."
        )
      }
    }
  }

  func replaces() async throws {
    var first = entry("first")
    first.validator = "tag"
    first.timeToLive = .seconds(60)
    try await requireKept(first, "An entry is kept.")
    try await requireKept(entry("second"), "A new entry has no part of the previous one.")
    try await b.store(["key": entry("third")])
    try require(try await value(a) == "third", "The entry of another instance replaces it.")
  }

  func batches() async throws {
    let keys = (0..<500).map { "users/\($0)" }
    try await a.store(entries(keys))
    try require(
      try await present(keys).count == keys.count,
      "All entries of a batch are stored."
    )
  }

  /// Keys that file systems, patterns, and languages of queries treat specially.
  private static let keys = [
    "", " ", ".", "..", "/", "//", "a", "A", "a/", "/a", "a/b", "a//b", "a/./b", "a/../b", "../a",
    "~", "\\", "a\\b", "C:\\a", "con", "nul.json", ".json", "a.json", "%", "%2F", "%2f", "a%2Fb",
    "%00", "_", "*", "?", "[a]", "'", "\"", "';--", "`", "$a", "{a}", "a:b", "a b", "a\tb", "a\nb",
    "\r\n", "\0", "a\0", "a\0b", "\u{7f}", "\u{feff}a", "é", "日本", "😀", "👩‍👩‍👧", "ß", "SS", "ss", "İ",
    "i",
    "1", "01", "1.0", "null", "true", String(repeating: "k", count: 300),
    String(repeating: "k", count: 10_000), String(repeating: "/k", count: 1_000),
    String(repeating: "é", count: 1_000),
  ]

  func anyKey() async throws {
    let keys = Self.keys
    try await a.store(entries(keys))
    try require(
      try await present(keys) == Set(keys),
      "Every text is a key, and has an entry of its own."
    )
    let removed = Set(keys.enumerated().filter { $0.offset.isMultiple(of: 2) }.map(\.element))
    try await a.removeEntries(forKeys: removed)
    try require(
      try await present(keys) == Set(keys).subtracting(removed),
      "A removal of some keys removes no other."
    )
  }

  func anySize() async throws {
    try await requireKept(entry(""), "An empty value is one.")
    let megabyte = String(repeating: "0123456789abcde\n", count: 1 << 16)
    try await requireKept(
      entry(String(repeating: megabyte, count: 4)),
      "A value of four megabytes is kept."
    )
  }

  // MARK: - Removals

  func removesKeys() async throws {
    let keys = ["a", "b", "ab", "a/b"]
    try await a.store(entries(keys))
    try await b.removeEntries(forKeys: ["a", "absent"])
    try require(try await value(a, "a") == nil, "The entry of a removed key is removed.")
    try await a.removeEntries(forKeys: [])
    try require(try await present(keys) == ["b", "ab", "a/b"], "The other entries are kept.")
    try await a.store(entries(["a"]))
    try require(try await present(keys) == Set(keys), "A removed key can be stored again.")
  }

  func removesEverything() async throws {
    let keys = Self.keys + (0..<200).map { "users/\($0)" }
    try await a.store(entries(keys))
    try await b.removeAllEntries()
    try require(try await present(keys).isEmpty, "All entries are removed.")
    try await a.store(entries(["a"]))
    try require(try await present(keys) == ["a"], "Later entries are stored.")
  }

  /// Prefixes with keys that have it, and keys that are similar and have it not.
  private static let prefixes: [(prefix: String, with: [String], without: [String])] = [
    (
      "users/", ["users/", "users/7", "users/é", "users//", "users/\u{7f}", "users/😀"],
      ["users", "users0", "user/7", "Users/7", "orders/users/7", " users/7", ""]
    ),
    ("50%/", ["50%/7"], ["50/7", "500/7", "50a/7"]), ("a_/", ["a_/7"], ["ab/7", "a/7"]),
    ("*", ["*", "*a"], ["a", "a*"]), ("[ab]/", ["[ab]/7"], ["a/7", "b/7"]),
    ("'/", ["'/7"], ["/7", "''/7"]), ("é/", ["é/7"], ["e/7", "ê/7"]),
    ("😀", ["😀", "😀/7"], ["😁", "7"]), ("a\0/", ["a\0/7"], ["a/7", "a"]),
  ]

  func removesPrefixes() async throws {
    for (prefix, with, without) in Self.prefixes {
      try await a.store(entries(with + without))
      try await b.removeEntries(withPrefix: prefix)
      try require(
        try await present(with).isEmpty,
        "A removal by the prefix \(prefix) removes all entries with it."
      )
    }
    try await a.store(entries(Self.keys))
    try await a.removeEntries(withPrefix: "")
    try require(try await present(Self.keys).isEmpty, "Every key has the empty prefix.")
  }

  func keepsOtherPrefixes() async throws {
    for (prefix, with, without) in Self.prefixes {
      try await a.store(entries(with + without))
      try await b.removeEntries(withPrefix: prefix)
      try require(
        try await present(without) == Set(without),
        "A removal by the prefix \(prefix) keeps the entries without it."
      )
    }
  }

  func fencedByRemovals() async throws {
    guard a.generation != nil else { return }
    let removals: [(name: String, remove: (any Cacher<Value>) async throws -> Void)] = [
      ("its key", { try await $0.removeEntries(forKeys: ["users/7"]) }),
      ("a prefix", { try await $0.removeEntries(withPrefix: "users/") }),
      ("everything", { try await $0.removeAllEntries() }),
    ]
    for (name, remove) in removals {
      for (first, second) in [(a, a), (a, b)] {
        var old = entry("old")
        old.generation = first.generation
        try await remove(second)
        try await first.store(["users/7": old])
        try require(
          try await value(second, "users/7") == nil,
          "An entry from before a removal of \(name) is not stored."
        )
        var new = entry("new")
        new.generation = first.generation
        try await first.store(["users/7": new])
        try require(
          try await value(second, "users/7") == "new",
          "An entry from after a removal of \(name) is stored."
        )
      }
    }
  }

  // MARK: - Order and concurrency

  func order() async throws {
    for number in 0..<20 {
      let (writer, reader) = number.isMultiple(of: 2) ? (a, b) : (b, a)
      try await writer.store(["key": entry("\(number)")])
      for cacher in [writer, reader] {
        try require(
          try await value(cacher) == "\(number)",
          "A read after a store returns its entry."
        )
      }
      guard number.isMultiple(of: 3) else { continue }
      switch number % 9 {
      case 0: try await reader.removeEntries(forKeys: ["key"])
      case 3: try await reader.removeEntries(withPrefix: "ke")
      default: try await reader.removeAllEntries()
      }
      for cacher in [writer, reader] {
        try require(try await value(cacher) == nil, "A read after a removal is a miss.")
      }
    }
  }

  func bulkReads() async throws {
    guard
      let first = a as? any BatchReadingCacher<Value>,
      let second = b as? any BatchReadingCacher<Value>
    else { return }
    let keys = Self.keys + (0..<500).map { "users/\($0)" }
    let stored = entries(keys.enumerated().filter { $0.offset % 3 != 0 }.map(\.element))
    try await a.store(stored)
    for cacher in [first, second] {
      try require(
        try await cacher.entries(forKeys: []).isEmpty,
        "Reading no key returns no entry."
      )
      let found = try await cacher.entries(forKeys: Set(keys))
      try require(
        Set(found.keys) == Set(stored.keys),
        "Reading many keys returns those that have an entry."
      )
      try require(found == stored, "Reading many keys returns the entry of each.")
      let part = try await cacher.entries(forKeys: ["users/1", "absent", keys[1]])
      try require(
        part.allSatisfy { stored[$0.key] == $0.value } && part["absent"] == nil,
        "Reading some keys returns theirs only."
      )
    }
  }

  func concurrentUse() async throws {
    let body = String(repeating: "x", count: 10_000)
    /// An entry of which each part names the key and the writer.
    func whole(_ key: String, _ writer: Int) -> Entry {
      CacheEntry(
        value: Value("\(key) \(writer) \(body) \(writer)"),
        storedAt: .seconds(writer),
        validator: "\(key) \(writer)"
      )
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<16 {
        let cacher = task.isMultiple(of: 2) ? a : b
        group.addTask {
          for round in 0..<20 {
            let keys = ["shared", "mine/\(task)"]
            let writer = task * 100 + round
            try await cacher.store(
              Dictionary(uniqueKeysWithValues: keys.map { ($0, whole($0, writer)) })
            )
            let mine = try await cacher.entry(forKey: keys[1])
            try require(
              mine == whole(keys[1], writer),
              "A task that alone uses a key reads what it has stored."
            )
            if let shared = try await cacher.entry(forKey: keys[0]) {
              let writer = Int(truncatingIfNeeded: shared.storedAt.components.seconds)
              try require(shared == whole(keys[0], writer), "A reader gets a whole entry.")
            }
            guard round % 5 == 4 else { continue }
            try await cacher.removeEntries(forKeys: Set(keys))
            try require(
              try await cacher.entry(forKey: keys[1]) == nil,
              "A task that alone uses a key has removed it."
            )
          }
        }
      }
      try await group.waitForAll()
    }
  }

  // MARK: - Cancellation and failures

  /// Performs an operation in a task that is cancelled.
  private func cancelled<Result: Sendable>(
    _ operation: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    try await withThrowingTaskGroup(of: Result.self) { group in
      group.cancelAll()
      group.addTask { try await operation() }
      guard let result = try await group.next() else { throw CancellationError() }
      return result
    }
  }

  func cancelledStore() async throws {
    let keys = (0..<200).map { "users/\($0)" }
    let entries = entries(keys)
    var omitted: Set<String> = []
    do {
      try await cancelled { [a] in try await a.store(entries) }
    } catch let error as CacherError {
      omitted = error.keys
      try require(
        error.failures.values.allSatisfy { $0 is CancellationError },
        "The reason is the cancellation."
      )
    } catch {
      try require(false, "A store that omits entries throws an error that names them.")
    }
    try require(
      try await present(keys).isSuperset(of: Set(keys).subtracting(omitted)),
      "An entry that is not named is stored."
    )
    try await a.store(entries)
    try require(try await present(keys).count == keys.count, "The next store is complete.")
  }

  func cancelledRemoval() async throws {
    let keys = ["users/1", "users/2", "orders/1", "other"]
    try await a.store(entries(keys))
    do {
      let entry = try await cancelled { [a] in try await a.entry(forKey: "users/1") }
      try require(entry?.value.text == "of users/1", "A cancelled task reads an entry.")
      try await cancelled { [a] in try await a.removeEntries(forKeys: ["users/1"]) }
      try require(try await value(b, "users/1") == nil, "A cancelled task removes a key.")
      try await cancelled { [a] in try await a.removeEntries(withPrefix: "users/") }
      try require(try await value(b, "users/2") == nil, "A cancelled task removes a prefix.")
      try await cancelled { [a] in try await a.removeAllEntries() }
      try require(try await present(keys).isEmpty, "A cancelled task removes everything.")
    } catch is CancellationError {
      try require(false, "A cancelled task reads and removes without an error.")
    }
  }

  func failingValues() async throws {
    try await a.store(entries(["bad"]))
    var new = entries(["good", "bad"])
    new["bad"]?.value = Value("refused", refusesEncoding: true)
    var named: Set<String> = []
    do {
      try await a.store(new)
    } catch let error as CacherError {
      named = error.keys
    } catch {
      try require(false, "A store that omits entries throws an error that names them.")
    }
    try require(named.isSubset(of: ["bad"]), "Only an entry that cannot be stored is named.")
    try require(try await value(b, "good") == "of good", "The other entries are stored.")
    let kept = try await value(b, "bad")
    try require(
      named.isEmpty ? kept == "refused" : kept == nil || kept == "of bad",
      "An entry that is named stays as it was, or is removed."
    )
  }
}
