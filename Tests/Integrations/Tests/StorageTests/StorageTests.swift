import Foundation
import GRDB
import Plexus
import PlexusSharedTesting
import PlexusTesting
import Testing

@Suite struct `A cacher over SQLite` {
  private let folder = FileManager.default.temporaryDirectory
    .appending(path: "sqlite-\(UUID().uuidString.prefix(8))", directoryHint: .isDirectory)

  private var path: String { folder.appending(path: "cache.sqlite").path }

  private func withCacher<Result>(
    _ body: (SQLiteCacher<String>) async throws -> Result
  ) async throws -> Result {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try await body(SQLiteCacher<String>(path: path, schema: "1"))
  }

  private func entry(_ value: String) -> CacheEntry<String> {
    CacheEntry(value: value, storedAt: .seconds(1))
  }

  @Test(arguments: CacherConformance.Rule.allCases)
  func `it passes the conformance suite of cachers`(rule: CacherConformance.Rule) async throws {
    try await withCacher { _ in
      let suite = CacherConformance { count in
        try (0..<count).map { _ in
          try SQLiteCacher<CacherConformance.Value>(path: path, schema: "conformance")
        }
      }
      try await suite.check(rule)
    }
  }

  @Test func `an entry is read as it was stored`() async throws {
    try await withCacher { cacher in
      let whole = CacheEntry(
        value: "Ada",
        storedAt: Duration(secondsComponent: 1_700_000_000, attosecondsComponent: 123_456_789),
        validator: "\"tag\"",
        directives: CacheDirectives(
          timeToLive: .milliseconds(1_500),
          staleWhileRevalidate: .seconds(2),
          staleIfError: .seconds(3),
          requiresRevalidation: true
        )
      )
      try await cacher.store(["users/7": whole])
      #expect(try await cacher.entry(forKey: "users/7") == whole)
      #expect(try await cacher.entry(forKey: "users/8") == nil)
      let other = try SQLiteCacher<String>(path: path, schema: "2")
      #expect(try await other.entry(forKey: "users/7") == nil)
      let numbers = try SQLiteCacher<[Int]>(path: path, schema: "1")
      #expect(try await numbers.entry(forKey: "users/7") == nil)
    }
  }

  @Test func `any string is a key`() async throws {
    try await withCacher { cacher in
      let keys = [
        "", "\0", "a\0b", "../x", "A", "a", "%", "_", "é", "users/7", "'",
        String(repeating: "k", count: 10_000),
      ]
      try await cacher.store(Dictionary(uniqueKeysWithValues: keys.map { ($0, entry("of \($0)")) }))
      for key in keys { #expect(try await cacher.entry(forKey: key)?.value == "of \(key)") }
      #expect(try await cacher.entries(forKeys: Set(keys)).count == keys.count)
      try await cacher.removeEntries(forKeys: ["A"])
      #expect(try await cacher.entry(forKey: "a") != nil)
      #expect(try await cacher.entry(forKey: "A") == nil)
    }
  }

  @Test func `a prefix removes its keys only`() async throws {
    try await withCacher { cacher in
      let keys = ["users/", "users/7", "users/é", "users0", "user", "orders/users/7"]
      try await cacher.store(Dictionary(uniqueKeysWithValues: keys.map { ($0, entry($0)) }))
      try await cacher.removeEntries(withPrefix: "users/")
      let rest = try await cacher.entries(forKeys: Set(keys)).keys
      #expect(Set(rest) == ["users0", "user", "orders/users/7"])
    }
  }

  @Test func `an entry that was removed since its generation is not stored`() async throws {
    try await withCacher { first in
      let second = try SQLiteCacher<String>(path: path, schema: "1")
      func expectOmitted(
        _ isOmitted: Bool,
        _ removal: (SQLiteCacher<String>) async throws -> Void
      ) async throws {
        var old = entry("old")
        old.generation = first.generation
        #expect(old.generation != nil)
        try await removal(second)
        try await first.store(["users/7": old])
        #expect(try await first.entry(forKey: "users/7") == (isOmitted ? nil : entry("old")))
        var new = entry("new")
        new.generation = first.generation
        try await first.store(["users/7": new])
        #expect(try await second.entry(forKey: "users/7")?.value == "new")
      }
      try await expectOmitted(true) { try await $0.removeEntries(forKeys: ["users/7"]) }
      try await expectOmitted(true) { try await $0.removeEntries(withPrefix: "users/") }
      try await expectOmitted(true) { try await $0.removeAllEntries() }
      try await expectOmitted(false) { try await $0.removeEntries(forKeys: ["users/8"]) }
      try await expectOmitted(false) { try await $0.removeEntries(withPrefix: "orders/") }
    }
  }

  @Test func `removals that are forgotten omit older entries`() async throws {
    try await withCacher { cacher in
      var old = entry("old")
      old.generation = cacher.generation
      try await cacher.removeEntries(forKeys: Set((0..<10_001).map { "\($0)" }))
      try await cacher.store(["other": old])
      #expect(try await cacher.entry(forKey: "other") == nil)
    }
  }

  @Test func `a map reads many copies with one call, and signs out`() async throws {
    try await withCacher { cacher in
      func makeUsers() -> MultiplexerMap<Int, String> {
        .bulk(id: "users", policy: CachePolicy(cacherRead: .beforeFetch), cacher: cacher) { ids in
          Dictionary(uniqueKeysWithValues: ids.map { ($0, "user \($0)") })
        }
      }
      let users = makeUsers()
      _ = await users.request(Array(0..<1_000))
      try await users.flush()
      let restarted = makeUsers()
      #expect(await restarted.request(Array(0..<1_000)).count == 1_000)
      #expect(restarted.statistics.fetches == 0)
      #expect(restarted.statistics.restorations == 1_000)
      try await restarted.clear()
      #expect(try await cacher.entry(forKey: "users/7") == nil)
      // What another instance has in memory is not written back.
      try await users.flush()
      #expect(try await cacher.entry(forKey: "users/7") == nil)
    }
  }

  private static let secret = "a secret that is long enough to find"

  private func expectNoSecret() throws {
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
      let bytes = try Data(contentsOf: folder.appending(path: name))
      #expect(bytes.range(of: Data(Self.secret.utf8)) == nil, "\(name)")
    }
  }

  @Test func `nothing of a removed value is left in the files`() async throws {
    try await withCacher { cacher in
      try await cacher.store(["users/7": entry(Self.secret)])
      try await cacher.removeEntries(forKeys: ["users/7"])
      try expectNoSecret()
      let repository = MuxRepository()
      let users = MultiplexerMap<Int, String>(id: "users", cacher: cacher) { _ in Self.secret }
        .register(in: repository)
      let user = Multiplexer<String>(id: "user", cacher: cacher) { Self.secret }
        .register(in: repository)
      _ = try await (users.request(7), user.request())
      try await repository.flushAll()
      #expect(try await cacher.entry(forKey: "users/7") != nil)
      try await repository.clearAll()
      #expect(try await cacher.entry(forKey: "users/7") == nil)
      try expectNoSecret()
    }
  }

  @Test func `a removal removes the values of all versions`() async throws {
    try await withCacher { old in
      let removals: [(SQLiteCacher<String>) async throws -> Void] = [
        { try await $0.removeAllEntries() },
        { try await $0.removeEntries(withPrefix: "users/") },
        { try await $0.removeEntries(forKeys: ["users/7"]) },
      ]
      for removal in removals {
        var late = entry(Self.secret)
        late.generation = old.generation
        try await old.store(["users/7": late])
        let cacher = try SQLiteCacher<String>(path: path, schema: "2")
        #expect(try await cacher.entry(forKey: "users/7") == nil)
        try await removal(cacher)
        try expectNoSecret()
        try await old.store(["users/7": late])
        #expect(try await old.entry(forKey: "users/7") == nil)
      }
    }
  }

  @Test func `a value of a new version replaces the old one`() async throws {
    try await withCacher { old in
      try await old.store(["users/7": entry(Self.secret)])
      let cacher = try SQLiteCacher<String>(path: path, schema: "1\0x")
      #expect(try await cacher.entry(forKey: "users/7") == nil)
      var new = entry("new")
      new.validator = "a\0b"
      try await cacher.store(["users/7": new])
      #expect(try await cacher.entry(forKey: "users/7") == new)
      #expect(try await old.entry(forKey: "users/7") == nil)
    }
  }

  /// The removals are those of many caches with similar names.
  @Test(arguments: 1...4) func `late entries are omitted as in a model`(seed: UInt64) async throws {
    try await withCacher { cacher in
      var random = Seeded(state: seed)
      func text() -> String {
        String(
          (0..<Int.random(in: 0...5, using: &random)).map { _ in
            "ab/é".randomElement(using: &random) ?? "a"
          }
        )
      }
      var removals: [(text: String, isPrefix: Bool)] = []
      for _ in 0..<40 {
        var late: [String: CacheEntry<String>] = [:]
        let start = removals.count
        for _ in 0..<10 {
          var new = entry("late")
          new.generation = cacher.generation
          late[text()] = new
        }
        for _ in 0..<Int.random(in: 0...5, using: &random) {
          let removal = (text: text(), isPrefix: Bool.random(using: &random))
          removals.append(removal)
          if removal.isPrefix {
            try await cacher.removeEntries(withPrefix: removal.text)
          } else {
            try await cacher.removeEntries(forKeys: [removal.text])
          }
        }
        try await cacher.store(late)
        for key in late.keys {
          let isRemoved = removals[start...].contains {
            $0.isPrefix ? key.utf8.starts(with: $0.text.utf8) : key == $0.text
          }
          let found = try await cacher.entry(forKey: key)
          #expect((found == nil) == isRemoved, "\(key) after \(removals[start...])")
        }
        try await cacher.removeAllEntries()
        removals.append(("", true))
      }
    }
  }

  @Test func `a database of another layout is emptied`() async throws {
    try await withCacher { _ in
      let other = folder.appending(path: "other.sqlite").path
      let queue = try DatabaseQueue(path: other)
      try await queue.write { database in
        // That of an earlier version.
        try database.execute(
          sql: """
            CREATE TABLE entries (schema TEXT, key BLOB, value BLOB, PRIMARY KEY (schema, key));
            CREATE TABLE counts (schema TEXT PRIMARY KEY, epoch INTEGER, number INTEGER);
            CREATE TABLE removals (schema TEXT, key BLOB, isPrefix INTEGER, number INTEGER);
            INSERT INTO entries VALUES ('1', 'users/7', '\(Self.secret)');
            """
        )
      }
      try queue.close()
      let cacher = try SQLiteCacher<String>(path: other, schema: "1")
      try await cacher.store(["users/8": entry("new")])
      #expect(
        try await SQLiteCacher<String>(path: other, schema: "1").entry(forKey: "users/8") != nil
      )
      try await cacher.removeAllEntries()
      #expect(try await cacher.entry(forKey: "users/8") == nil)
      try expectNoSecret()
    }
  }

  @Test func `a removal does not wait for a reader, and the next one empties the log`() async throws
  {
    try await withCacher { cacher in
      try await cacher.store(["users/7": entry(Self.secret), "users/8": entry("new")])
      let other = try DatabasePool(path: path)
      let snapshot = try other.makeSnapshot()
      #expect(
        try await snapshot.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM entries") } == 2
      )
      let start = ContinuousClock.now
      try await cacher.removeEntries(forKeys: ["users/7"])
      // Waiting takes five seconds.
      #expect(start.duration(to: .now) < .seconds(4))
      #expect(try await cacher.entry(forKey: "users/7") == nil)
      try snapshot.close()
      try await cacher.removeEntries(forKeys: ["users/9"])
      try expectNoSecret()
    }
  }

  @Test func `a prefix replaces the removals that it includes`() async throws {
    try await withCacher { cacher in
      var late = entry("late")
      late.generation = cacher.generation
      try await cacher.removeEntries(forKeys: Set((0..<100).map { "users/\($0)" }))
      try await cacher.removeEntries(withPrefix: "users/a/")
      try await cacher.removeEntries(withPrefix: "users/")
      let queue = try DatabaseQueue(path: path)
      let count = try await queue.read {
        try Int.fetchOne($0, sql: "SELECT count(*) FROM removals")
      }
      #expect(count == 1)
      try await cacher.store(["users/7": late, "users/a/b": late, "orders/7": late])
      #expect(try await cacher.entries(forKeys: ["users/7", "users/a/b"]).isEmpty)
      #expect(try await cacher.entry(forKey: "orders/7") != nil)
    }
  }

  @Test func `without its count nothing is stored`() async throws {
    try await withCacher { cacher in
      let queue = try DatabaseQueue(path: path)
      try await queue.write { try $0.execute(sql: "DELETE FROM counts") }
      var new = entry("a")
      new.generation = cacher.generation
      await #expect(throws: CacherError.self) { try await cacher.store(["a": new]) }
      #expect(try await cacher.entry(forKey: "a") == nil)
    }
  }

  @Test func `stores do not slow down with the number of removed prefixes`() async throws {
    try await withCacher { cacher in
      func quickestStore() async throws -> Duration {
        var batch: [String: CacheEntry<String>] = [:]
        for number in 0..<1_000 {
          batch["orders/\(number)"] = entry("new")
          batch["orders/\(number)"]?.generation = cacher.generation
        }
        var quickest: Duration = .seconds(60)
        for _ in 0..<3 {
          quickest = min(
            quickest,
            try await ContinuousClock().measure { [batch] in try await cacher.store(batch) }
          )
        }
        return quickest
      }
      let before = try await quickestStore()
      let queue = try DatabaseQueue(path: path)
      try await queue.write { database in
        // As the cacher remembers them.
        try database.execute(
          sql: """
            WITH RECURSIVE numbers (n) AS
              (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 9000)
            INSERT INTO removals SELECT 1, CAST('orders/' || n || '/' AS BLOB), n FROM numbers;
            UPDATE counts SET number = 9000
            """
        )
      }
      let after = try await quickestStore()
      print("1,000 stored: \(before), after 9,000 removals of prefixes: \(after)")
      // Comparing each key with each prefix takes a hundred times as long.
      #expect(after < before * 20)
      #expect(try await cacher.entry(forKey: "orders/999") != nil)
    }
  }

  @Test func `a damaged row is a miss, and is replaced`() async throws {
    try await withCacher { cacher in
      try await cacher.store(["a": entry("a"), "b": entry("b")])
      let queue = try DatabaseQueue(path: path)
      try await queue.write { database in
        try database.execute(sql: "UPDATE entries SET value = x'00' WHERE key = x'61'")
      }
      #expect(try await cacher.entry(forKey: "a") == nil)
      #expect(try await cacher.entry(forKey: "b") != nil)
      try await cacher.store(["a": entry("new")])
      #expect(try await cacher.entry(forKey: "a")?.value == "new")
    }
  }

  @Test func `a value that cannot be encoded does not stop the others`() async throws {
    try await withCacher { _ in
      let cacher = try SQLiteCacher<Double>(path: path, schema: "numbers")
      let entries = [1.0, .infinity].map { CacheEntry(value: $0, storedAt: .zero) }
      await #expect {
        try await cacher.store(["good": entries[0], "bad": entries[1]])
      } throws: { error in
        (error as? CacherError)?.keys == ["bad"]
      }
      #expect(try await cacher.entry(forKey: "good")?.value == 1)
    }
  }

  @Test func `a process that is killed has stored what it has confirmed`() async throws {
    try await withCacher { cacher in
      for round in 0..<3 {
        let writer = try Writer(path: path)
        let last = try writer.killed(after: 20 * (round + 1))
        for batch in 0...last {
          let keys = Set((0..<10).map { "\(batch)/\($0)" })
          let entries = try await cacher.entries(forKeys: keys)
          #expect(entries.count == 10)
          #expect(entries.values.allSatisfy { $0.value == "value of \(batch)" })
        }
      }
      let queue = try DatabaseQueue(path: path)
      let report = try await queue.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") }
      #expect(report == "ok")
    }
  }

  @Test func `two processes write at the same time`() async throws {
    try await withCacher { cacher in
      let writer = try Writer(path: path)
      for number in 0..<50 { try await cacher.store(["mine/\(number)": entry("\(number)")]) }
      let last = try writer.killed(after: 20)
      #expect(try await cacher.entries(forKeys: Set((0..<50).map { "mine/\($0)" })).count == 50)
      #expect(try await cacher.entry(forKey: "\(last)/0") != nil)
    }
  }

  @Test func `a million entries`() async throws {
    let count = 1_000_000
    try await withCacher { cacher in
      try await cacher.store(["users/0": entry("user 0")])
      let queue = try DatabaseQueue(path: path)
      try await queue.write { database in
        // As the cacher stores them.
        try database.execute(
          sql: """
            WITH RECURSIVE numbers (n) AS
              (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
            INSERT INTO entries
            SELECT CAST('users/' || n AS BLOB), schema, CAST('"user ' || n || '"' AS BLOB),
              seconds, attoseconds, validator, directives
            FROM entries, numbers WHERE key = CAST('users/0' AS BLOB)
            """,
          arguments: [count - 1]
        )
      }
      try await cacher.store(["orders/1": entry("order")])
      let clock = ContinuousClock()
      let keys = Set((0..<1_000).map { "users/\($0 * count / 1_000)" })
      var found: [String: CacheEntry<String>] = [:]
      let reading = try await clock.measure { found = try await cacher.entries(forKeys: keys) }
      #expect(found.count == 1_000)
      #expect(found["users/999000"]?.value == "user 999000")
      let new = Dictionary(uniqueKeysWithValues: keys.map { ($0, entry("new")) })
      let storing = try await clock.measure { try await cacher.store(new) }
      #expect(try await cacher.entry(forKey: "users/999000")?.value == "new")
      #expect(try await cacher.entry(forKey: "users/999001")?.value == "user 999001")
      let removing = try await clock.measure {
        try await cacher.removeEntries(withPrefix: "users/")
      }
      #expect(try await cacher.entries(forKeys: keys).isEmpty)
      #expect(try await cacher.entry(forKey: "orders/1") != nil)
      print("of \(count) entries: 1,000 read \(reading), stored \(storing), removed \(removing)")
    }
  }
}

/// A linear congruential generator (Knuth, MMIX).
private struct Seeded: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return state ^ state >> 33
  }
}

/// A process that stores batches until it is killed.
private final class Writer {
  private let process = Process()
  private let output = Pipe()

  init(path: String) throws {
    let program = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
    process.executableURL = program.appending(path: "SQLiteWriter")
    process.arguments = [path, "100000"]
    process.standardOutput = output
    try ProcessThread.run { [process] in try process.run() }
  }

  /// Kills the process when it has confirmed some batches, and returns the last batch that it has confirmed.
  func killed(after count: Int) throws -> Int {
    var text = Data()
    while text.count(where: { $0 == UInt8(ascii: "\n") }) < count {
      guard let more = try output.fileHandleForReading.read(upToCount: 1), !more.isEmpty else {
        break
      }
      text += more
    }
    kill(process.processIdentifier, SIGKILL)
    if let rest = try output.fileHandleForReading.readToEnd() { text += rest }
    try ProcessThread.run { [process] in process.waitUntilExit() }
    let lines = String(decoding: text, as: UTF8.self).split(
      separator: "\n",
      omittingEmptySubsequences: false
    )
    return lines.dropLast().last.flatMap { Int($0) } ?? -1
  }
}
