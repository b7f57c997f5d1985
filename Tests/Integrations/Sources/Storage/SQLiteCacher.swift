import Foundation
import GRDB
import Plexus

/// Stores entries in a database that several processes can open.
final class SQLiteCacher<Value: Codable & Sendable>: BatchReadingCacher {
  private let pool: DatabasePool
  /// Reads the number of removals. It waits neither for the other readers nor for a writer.
  private let counter: DatabaseQueue
  /// The version of the values; rows of another version are ignored.
  private let schema: String

  init(path: String, schema: String) throws {
    self.schema = schema
    var configuration = Configuration()
    // Another process can be writing.
    configuration.busyMode = .timeout(5)
    pool = try DatabasePool(path: path, configuration: configuration)
    try pool.writeWithoutTransaction { database in
      // A pool sets NORMAL after it has prepared the connection. Durable means also after a power failure.
      try database.execute(sql: "PRAGMA synchronous = FULL")
      // What has been removed cannot be read from the file.
      try database.execute(sql: "PRAGMA secure_delete = ON")
    }
    try pool.write { database in
      try database.execute(
        sql: """
          CREATE TABLE IF NOT EXISTS entries (
            schema TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,
            seconds INTEGER NOT NULL, attoseconds INTEGER NOT NULL,
            validator TEXT, directives BLOB NOT NULL,
            PRIMARY KEY (schema, key));
          CREATE TABLE IF NOT EXISTS counts (
            schema TEXT PRIMARY KEY, epoch INTEGER NOT NULL, number INTEGER NOT NULL,
            forgotten INTEGER NOT NULL DEFAULT 0);
          CREATE TABLE IF NOT EXISTS removals (
            schema TEXT NOT NULL, key BLOB NOT NULL, isPrefix INTEGER NOT NULL,
            number INTEGER NOT NULL,
            PRIMARY KEY (schema, isPrefix, key));
          CREATE INDEX IF NOT EXISTS removalsByNumber ON removals (schema, number);
          """
      )
      try database.execute(
        sql: "INSERT OR IGNORE INTO counts (schema, epoch, number) VALUES (?, ?, 0)",
        arguments: [schema, Int64.random(in: 1...Int64.max)]
      )
    }
    configuration.readonly = true
    counter = try DatabaseQueue(path: path, configuration: configuration)
  }

  var generation: CacheGeneration? {
    // A number that cannot be read stores nothing: the value is fetched again.
    let row = try? counter.read { try self.count($0) }
    return CacheGeneration(epoch: row?.epoch ?? 0, number: row?.number ?? 0)
  }

  func entry(forKey key: String) async throws -> CacheEntry<Value>? {
    try await entries(forKeys: [key])[key]
  }

  func entries(forKeys keys: Set<String>) async throws -> [String: CacheEntry<Value>] {
    try await complete { cacher in
      try await cacher.pool.read { database in
        let statement = try database.cachedStatement(
          sql: """
            SELECT value, seconds, attoseconds, validator, directives
            FROM entries WHERE schema = ? AND key = ?
            """
        )
        var entries: [String: CacheEntry<Value>] = [:]
        for key in keys {
          let row = try Row.fetchOne(statement, arguments: [cacher.schema, Data(key.utf8)])
          entries[key] = row.flatMap(Self.entry)
        }
        return entries
      }
    }
  }

  func store(_ entries: [String: CacheEntry<Value>]) async throws {
    var failures: [String: any Error] = [:]
    var rows: [(key: String, generation: CacheGeneration?, values: StatementArguments)] = []
    for (key, entry) in entries {
      do {
        rows.append((key, entry.generation, try row(key, entry)))
      } catch {
        // A value that cannot be encoded does not stop the others.
        failures[key] = error
      }
    }
    do {
      // One transaction waits for the disk only once.
      try await pool.write { [rows] database in
        let count = try self.count(database)
        let prefixes = try Row.fetchAll(
          database,
          sql: "SELECT key, number FROM removals WHERE schema = ? AND isPrefix = 1",
          arguments: [self.schema]
        )
        let insert = try database.cachedStatement(
          sql: "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)"
        )
        for (key, generation, values) in rows {
          if let generation {
            guard generation.epoch == count.epoch, generation.number >= count.forgotten else {
              continue
            }
            let removal = try self.removal(of: Data(key.utf8), prefixes, database)
            if removal > generation.number { continue }
          }
          try insert.execute(arguments: values)
        }
      }
    } catch {
      // Rolled back: no row has been stored.
      for row in rows { failures[row.key] = error }
    }
    if !failures.isEmpty { throw CacherError(failures: failures) }
  }

  func removeEntries(forKeys keys: Set<String>) async throws {
    do {
      try await complete { cacher in
        try await cacher.pool.write { database in
          for key in keys {
            try cacher.remember(Data(key.utf8), isPrefix: false, database)
            try database.execute(
              sql: "DELETE FROM entries WHERE schema = ? AND key = ?",
              arguments: [cacher.schema, Data(key.utf8)]
            )
          }
        }
      }
    } catch {
      throw CacherError(failures: Dictionary(uniqueKeysWithValues: keys.map { ($0, error) }))
    }
  }

  func removeAllEntries() async throws {
    try await removeEntries(withPrefix: "")
    // The log of the database still has the old pages. While a process reads, they stay until the next time.
    try? await complete { cacher in
      try await cacher.pool.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
    }
  }

  func removeEntries(withPrefix prefix: String) async throws {
    try await complete { cacher in
      try await cacher.pool.write { database in
        let start = Data(prefix.utf8)
        try cacher.remember(start, isPrefix: true, database)
        // A range of keys uses the index. A byte of UTF-8 is less than 255.
        try database.execute(
          sql: "DELETE FROM entries WHERE schema = ? AND key >= ? AND key < ?",
          arguments: [cacher.schema, start, start + [255]]
        )
      }
    }
  }

  /// Reads or removes, also for a caller that is cancelled, in whose task GRDB does nothing.
  private func complete<Result: Sendable>(
    _ operation: @escaping @Sendable (SQLiteCacher) async throws -> Result
  ) async throws -> Result {
    try await Task { try await operation(self) }.value
  }

  // MARK: - Removals

  /// The number of removals that are remembered. Values that were fetched before the oldest are not stored.
  private static var memory: Int64 { 10_000 }

  private func count(
    _ database: Database
  ) throws -> (epoch: UInt64, number: UInt64, forgotten: UInt64) {
    let statement = try database.cachedStatement(
      sql: "SELECT epoch, number, forgotten FROM counts WHERE schema = ?"
    )
    guard let row = try Row.fetchOne(statement, arguments: [schema]) else { return (0, 0, 0) }
    return (UInt64(row[0] as Int64), UInt64(row[1] as Int64), UInt64(row[2] as Int64))
  }

  private func remember(_ key: Data, isPrefix: Bool, _ database: Database) throws {
    try database.execute(
      sql: """
        UPDATE counts SET number = number + 1, forgotten = max(forgotten, number + 1 - ?)
        WHERE schema = ?
        """,
      arguments: [Self.memory, schema]
    )
    let count = try count(database)
    try database.execute(
      sql: "INSERT OR REPLACE INTO removals VALUES (?, ?, ?, ?)",
      arguments: [schema, key, isPrefix, Int64(count.number)]
    )
    try database.execute(
      sql: "DELETE FROM removals WHERE schema = ? AND number <= ?",
      arguments: [schema, Int64(count.forgotten)]
    )
  }

  /// Returns the number of the last removal of a key.
  private func removal(of key: Data, _ prefixes: [Row], _ database: Database) throws -> UInt64 {
    let statement = try database.cachedStatement(
      sql: "SELECT number FROM removals WHERE schema = ? AND isPrefix = 0 AND key = ?"
    )
    var last = try Int64.fetchOne(statement, arguments: [schema, key]) ?? 0
    for prefix in prefixes where key.starts(with: prefix[0] as Data) {
      last = max(last, prefix[1])
    }
    return UInt64(last)
  }

  // MARK: - Rows

  private func row(_ key: String, _ entry: CacheEntry<Value>) throws -> StatementArguments {
    let (seconds, attoseconds) = entry.storedAt.components
    let encoder = JSONEncoder()
    return [
      schema, Data(key.utf8), try encoder.encode(entry.value), seconds, attoseconds,
      entry.validator, try encoder.encode(entry.directives),
    ]
  }

  /// A row that cannot be decoded is a cache miss, not an error: the value is fetched again.
  private static func entry(_ row: Row) -> CacheEntry<Value>? {
    let decoder = JSONDecoder()
    guard
      let value = try? decoder.decode(Value.self, from: row[0] as Data),
      let directives = try? decoder.decode(CacheDirectives.self, from: row[4] as Data)
    else { return nil }
    return CacheEntry(
      value: value,
      storedAt: Duration(secondsComponent: row[1], attosecondsComponent: row[2]),
      validator: row[3],
      directives: directives
    )
  }
}
