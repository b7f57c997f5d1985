import Foundation
import GRDB
import Plexus

/// Stores entries in a database that several processes can open.
///
/// What has been removed is removed for every version of the values. The values cannot be read from the files; the keys of
/// single removals are remembered.
final class SQLiteCacher<Value: Codable & Sendable>: BatchReadingCacher {
  private let pool: DatabasePool
  /// Reads the number of removals. It waits neither for the other readers nor for a writer.
  private let counter: DatabaseQueue
  /// The version of the values. Rows of another version are ignored until they are replaced.
  private let schema: Data

  /// The version of the tables. A database of another layout is emptied.
  private static var layout: Int64 { 2 }

  init(path: String, schema: String) throws {
    self.schema = Data(schema.utf8)
    var configuration = Configuration()
    // Another process can be writing.
    configuration.busyMode = .timeout(5)
    pool = try DatabasePool(path: path, configuration: configuration)
    try pool.writeWithoutTransaction { database in
      // A pool sets NORMAL after it has prepared the connection. Durable means also after a power failure.
      try database.execute(sql: "PRAGMA synchronous = FULL")
      try database.execute(sql: "PRAGMA secure_delete = ON")
    }
    try pool.write { database in
      let layout = try Int64.fetchOne(database, sql: "PRAGMA user_version")
      if layout == Self.layout { return }
      try database.execute(
        sql: """
          DROP TABLE IF EXISTS entries;
          DROP TABLE IF EXISTS counts;
          DROP TABLE IF EXISTS removals;
          CREATE TABLE entries (
            key BLOB PRIMARY KEY, schema BLOB NOT NULL, value BLOB NOT NULL,
            seconds INTEGER NOT NULL, attoseconds INTEGER NOT NULL,
            validator BLOB, directives BLOB NOT NULL);
          CREATE TABLE counts (
            id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, number INTEGER NOT NULL,
            forgotten INTEGER NOT NULL);
          CREATE TABLE removals (
            isPrefix INTEGER NOT NULL, key BLOB NOT NULL, number INTEGER NOT NULL,
            PRIMARY KEY (isPrefix, key));
          CREATE INDEX removalsByNumber ON removals (number);
          PRAGMA user_version = \(Self.layout);
          """
      )
      try database.execute(
        sql: "INSERT INTO counts VALUES (1, ?, 0, 0)",
        arguments: [Int64.random(in: 1...Int64.max)]
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
            FROM entries WHERE key = ? AND schema = ?
            """
        )
        var entries: [String: CacheEntry<Value>] = [:]
        for key in keys {
          let row = try Row.fetchOne(statement, arguments: [Data(key.utf8), cacher.schema])
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
        let insert = try database.cachedStatement(
          sql: "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)"
        )
        for (key, generation, values) in rows {
          if let generation {
            guard generation.epoch == count.epoch, generation.number >= count.forgotten else {
              continue
            }
            let removal = try self.lastRemoval(of: Data(key.utf8), database)
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
      try await remove { cacher, database in
        for key in keys {
          try cacher.remember(Data(key.utf8), isPrefix: false, database)
          try database.execute(
            sql: "DELETE FROM entries WHERE key = ?",
            arguments: [Data(key.utf8)]
          )
        }
      }
    } catch {
      throw CacherError(failures: Dictionary(uniqueKeysWithValues: keys.map { ($0, error) }))
    }
  }

  func removeAllEntries() async throws {
    try await removeEntries(withPrefix: "")
  }

  func removeEntries(withPrefix prefix: String) async throws {
    try await remove { cacher, database in
      let start = Data(prefix.utf8)
      // A range of keys uses the indices. A byte of UTF-8 is less than 255. This removal is later than all that it includes.
      for rows in ["entries WHERE", "removals WHERE isPrefix IN (0, 1) AND"] {
        try database.execute(
          sql: "DELETE FROM \(rows) key >= ? AND key < ?",
          arguments: [start, start + [255]]
        )
      }
      try cacher.remember(start, isPrefix: true, database)
    }
  }

  /// Removes rows in a transaction, and what the log of the database still has of them.
  private func remove(
    _ operation: @escaping @Sendable (SQLiteCacher, Database) throws -> Void
  ) async throws {
    try await complete { cacher in
      try await cacher.pool.write { try operation(cacher, $0) }
      // While another process reads, the old pages stay until the next removal: writers do not wait for readers.
      try? await cacher.pool.writeWithoutTransaction { database in
        try database.execute(sql: "PRAGMA busy_timeout = 0")
        defer { try? database.execute(sql: "PRAGMA busy_timeout = 5000") }
        try database.checkpoint(.truncate)
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
    let statement = try database.cachedStatement(sql: "SELECT epoch, number, forgotten FROM counts")
    guard let row = try Row.fetchOne(statement) else {
      throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "The row of counts is missing")
    }
    return (UInt64(row[0] as Int64), UInt64(row[1] as Int64), UInt64(row[2] as Int64))
  }

  private func remember(_ key: Data, isPrefix: Bool, _ database: Database) throws {
    try database.execute(
      sql: "UPDATE counts SET number = number + 1, forgotten = max(forgotten, number + 1 - ?)",
      arguments: [Self.memory]
    )
    let count = try count(database)
    try database.execute(
      sql: "INSERT OR REPLACE INTO removals VALUES (?, ?, ?)",
      arguments: [isPrefix, key, Int64(count.number)]
    )
    try database.execute(
      sql: "DELETE FROM removals WHERE number <= ?",
      arguments: [Int64(count.forgotten)]
    )
  }

  /// Returns the number of the last removal of a key.
  private func lastRemoval(of key: Data, _ database: Database) throws -> UInt64 {
    let whole = try database.cachedStatement(
      sql: "SELECT number FROM removals WHERE isPrefix = 0 AND key = ?"
    )
    var last = try Int64.fetchOne(whole, arguments: [key]) ?? 0
    // The prefixes of a key are not greater than it. Each step uses the index, and looks for a shorter one.
    let before = try database.cachedStatement(
      sql: """
        SELECT key, number FROM removals WHERE isPrefix = 1 AND key <= ?
        ORDER BY key DESC LIMIT 1
        """
    )
    var bound = key
    while let row = try Row.fetchOne(before, arguments: [bound]) {
      let found: Data = row[0]
      var length = zip(found, bound).prefix { $0 == $1 }.count
      if length == found.count {
        last = max(last, row[1])
        if length == 0 { break }
        length -= 1
      }
      bound = key.prefix(length)
    }
    return UInt64(last)
  }

  // MARK: - Rows

  private func row(_ key: String, _ entry: CacheEntry<Value>) throws -> StatementArguments {
    let (seconds, attoseconds) = entry.storedAt.components
    let encoder = JSONEncoder()
    return [
      Data(key.utf8), schema, try encoder.encode(entry.value), seconds, attoseconds,
      entry.validator.map { Data($0.utf8) }, try encoder.encode(entry.directives),
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
      validator: (row[3] as Data?).map { String(decoding: $0, as: UTF8.self) },
      directives: directives
    )
  }
}
