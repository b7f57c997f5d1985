public import Plexus

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A cacher that appends all entries, as JSON, to one file with checksums.
///
/// It suits maps and other sources of many small values: a batch is one write, made durable once, however
/// many entries it has, and an entry is read at its place in the file.
///
/// ```swift
/// import Plexus
/// import PlexusStorage
///
/// let cacher = try JSONLogCacher<String>()
/// try await cacher.store([
///   "1": CacheEntry(value: "Ada", storedAt: .seconds(1_700_000_000)),
///   "2": CacheEntry(value: "Grace", storedAt: .seconds(1_700_000_000)),
/// ])
/// try await cacher.removeEntries(forKeys: ["1"])
/// ```
///
/// ## The file
///
/// It lies in the directory under a name that begins with the type's, so that cachers of several types can
/// share one. The directory is created if there is none, with those above it, for the owner's eyes only
/// (0700; the file 0600). Where each entry is, is kept in memory: the keys and about 100 bytes for each. When
/// more than half of the file has been replaced or removed, what is left is written to a new file, which then
/// takes the old one's place.
///
/// ## Damage
///
/// Whatever the file holds, opening it does not fail: a file of another schema, version or program, or one
/// whose beginning is damaged, is replaced by an empty one. The end of a write that was cut short is cut
/// off. A damaged value is a miss. If it cannot be told whose record is damaged, all entries that were stored
/// before it are misses, too, for it may have been what replaced or removed them.
///
/// ## Crashes and several processes
///
/// What returns is durable, and at any time each key has its old entry or the new one, whole. Any number of
/// instances and processes may use one directory at once, and see what the others have stored and removed:
/// the file is locked while one of them writes, and never for longer. Reading waits for no lock: a process that
/// is stopped while it writes keeps others from writing, and not from reading. What one of them removes is written back
/// by no other one that had it in memory: a small file beside the log, with the ending `.removals`, tells of the last
/// 1,024 removals, and a value that a multiplexer had before more of them is not written.
///
/// ## Failing
///
/// Operations throw a ``StorageError``, or a `CacherError` with one for each key, if the system fails: no
/// permission, no space, or another process that keeps the file locked for more than ten seconds. The older
/// entry of a key that could not be stored stays. Entries can be removed, and the file made smaller, also on a full
/// disk.
///
/// ## Slow disks
///
/// Encoding and decoding happen where tasks run; the disk is waited for on a thread of the cacher's own. A
/// cancelled `store` leaves out what it has not begun to write.
///
/// - Important: Cachers in one directory whose values have one type share their entries, and one that is
///   cleared clears those of all. Give each a directory of its own; the default one is that of the program.
public final actor JSONLogCacher<Value: Codable & Sendable>: BatchReadingCacher {
  private nonisolated let log: LogStore

  /// Opens the log of a directory, or creates one.
  ///
  /// What the file holds is read by the first operation, not here.
  ///
  /// - Parameters:
  ///   - directory: Where the file is; if there is none, a folder of this program in the user's
  ///     caches directory: `$XDG_CACHE_HOME` or `~/.cache` on Linux.
  ///   - byteLimit: How many bytes the file may have. Before it exceeds that, the oldest entries by
  ///     `storedAt` are removed: as many as necessary, or with a limit of more than 1 MiB as many as
  ///     make an eighth of it free. An entry that is larger than the limit is not stored.
  ///   - schema: What the values are, such as `"profile 2"`: the entries stored under another one are
  ///     removed. The full name of the type if there is none.
  /// - Throws: A ``StorageError`` if there is no file and none can be created, or it must not be read and
  ///   written; never because of what the file holds.
  /// - Precondition: The directory is a file URL, and the byte limit is positive.
  public init(directory: URL? = nil, byteLimit: Int? = nil, schema: String? = nil) throws {
    try self.init(
      path: directory.map(path(of:)) ?? defaultDirectoryPath(),
      byteLimit: byteLimit,
      schema: schema,
      fileSystem: POSIXFileSystem()
    )
  }

  init(path: String, byteLimit: Int?, schema: String?, fileSystem: any FileSystem) throws {
    precondition(byteLimit ?? 1 > 0, "A byte limit must be positive; leave it out for no limit")
    log = try LogStore(
      folder: path,
      name: FileNames(Value.self).log,
      schema: schema ?? FileNames.fullName(of: Value.self),
      byteLimit: byteLimit,
      fileSystem: fileSystem
    )
  }

  /// How much has been removed from the file so far, by whatever instance or process.
  public nonisolated var generation: CacheGeneration? { log.generation }

  /// Returns the entry of a key.
  ///
  /// - Parameter key: The key.
  /// - Returns: The entry, however old it is; `nil` if there is none that is whole and can be decoded.
  /// - Throws: A ``StorageError`` if the file cannot be read.
  @concurrent
  public nonisolated func entry(forKey key: String) async throws -> CacheEntry<Value>? {
    try await log.read(key.canonicalSpelling).flatMap(Self.entry(of:))
  }

  /// Returns the entries of some keys.
  ///
  /// - Parameter keys: The keys.
  /// - Returns: The entries, however old they are, without those that are damaged or cannot be decoded.
  /// - Throws: A ``StorageError`` if the file cannot be read.
  @concurrent
  public nonisolated func entries(
    forKeys keys: Set<String>
  ) async throws -> [String: CacheEntry<Value>] {
    try await log.read(Set(keys.map(\.canonicalSpelling))).compactMapValues(Self.entry(of:))
  }

  private static func entry(of record: LogRecord) -> CacheEntry<Value>? {
    guard
      let payload = LogPayload.decode(record.payload),
      let value = try? JSONDecoder().decode(Value.self, from: payload.json)
    else { return nil }
    return CacheEntry(
      value: value,
      storedAt: record.label.storedAt,
      validator: record.label.validator,
      directives: payload.directives
    )
  }

  /// Stores entries, durably when it returns, but for those that have been removed since their generation.
  ///
  /// - Parameter entries: The entries by key.
  /// - Throws: A `CacherError` that names the keys whose entries were not stored; their older entries
  ///   are still there.
  @concurrent
  public nonisolated func store(_ entries: [String: CacheEntry<Value>]) async throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    var failures: [String: any Error] = [:]
    var records: [LogStore.Entry] = []
    records.reserveCapacity(entries.count)
    for (key, entry) in entries {
      let key = key.canonicalSpelling
      do {
        let json = try encoder.encode(entry.value)
        let payload = LogPayload.encode(json, directives: entry.directives)
        let size = max(payload.count, key.utf8.count, entry.validator?.utf8.count ?? 0)
        guard size <= LogRecord.maximumPartCount else {
          throw StorageError.entryTooLarge(byteCount: size, limit: LogRecord.maximumPartCount)
        }
        let record = LogRecord.encode(
          .entry,
          key: key,
          storedAt: entry.storedAt,
          validator: entry.validator,
          payload: payload
        )
        records.append(
          LogStore.Entry(
            key: key,
            storedAt: entry.storedAt,
            record: record,
            generation: entry.generation
          )
        )
      } catch {
        failures[key] = error
      }
    }
    records.sort { ($0.storedAt, $0.key) < ($1.storedAt, $1.key) }
    if !records.isEmpty { failures.merge(await log.store(records)) { first, _ in first } }
    if !failures.isEmpty { throw CacherError(failures: failures) }
  }

  /// Removes the entries of some keys, durably when it returns, also if the task is cancelled.
  ///
  /// - Parameter keys: The keys.
  /// - Throws: A `CacherError` that names the keys whose entries may still be there.
  @concurrent
  public nonisolated func removeEntries(forKeys keys: Set<String>) async throws {
    guard !keys.isEmpty else { return }
    do {
      try await log.remove(Set(keys.map(\.canonicalSpelling)))
    } catch {
      throw CacherError(failures: Dictionary(uniqueKeysWithValues: keys.map { ($0, error) }))
    }
  }

  /// Removes every entry, durably when it returns, also if the task is cancelled.
  ///
  /// - Throws: A ``StorageError`` if something may still be there.
  @concurrent
  public nonisolated func removeAllEntries() async throws {
    try await log.removeAll()
  }

  /// Removes every entry whose key begins with some characters, durably when it returns, also if the task is
  /// cancelled.
  ///
  /// - Parameter prefix: The beginning of the keys.
  /// - Throws: A ``StorageError`` if something may still be there.
  @concurrent
  public nonisolated func removeEntries(withPrefix prefix: String) async throws {
    try await log.remove(withPrefix: prefix.canonicalSpelling)
  }
}

extension JSONLogCacher: Hashable {
  /// Returns whether two cachers share their file.
  public static func == (left: JSONLogCacher, right: JSONLogCacher) -> Bool {
    left.log.path == right.log.path
  }

  /// Hashes the path of the file.
  public nonisolated func hash(into hasher: inout Hasher) {
    hasher.combine(log.path)
  }
}
