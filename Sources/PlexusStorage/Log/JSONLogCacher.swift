public import Plexus
internal import PlexusSupport

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A cacher that appends JSON-encoded entries to one log file with checksums.
///
/// Use it for many small values, such as those of a map: a batch is a single write that is made
/// durable once, and an entry is read directly from its position in the file.
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
/// ## File and memory
///
/// The file name begins with the name of the value type, so cachers of several types can share a directory. The
/// directory and its parents are created if necessary, with permissions 0700; the file has 0600. The
/// positions of the entries are kept in memory: the keys and about 100 bytes for each. When a file of
/// more than 4 KiB has more obsolete than live bytes, the live entries are written to a new file that
/// replaces the old one.
///
/// ## Damage
///
/// The content of the file never makes opening it fail: a file of another schema, version or program, or
/// with a damaged header, is replaced by an empty one. An incomplete write at the end is truncated. A damaged
/// value is a cache miss. If the key of a damaged record is unknown, all entries stored before it become cache
/// misses, because the record may have replaced or removed any of them.
///
/// ## Crashes and multiple processes
///
/// A write is durable when the call returns, and each key always has either its old entry or its new one in
/// full. Any number of instances and processes can use one directory at the same time and see each
/// other's changes. The file is locked only during a write, and reads do not wait for the lock: a process that
/// stalls during a write blocks other writers but no readers. An entry that one instance removes is not written
/// back by another that had it in memory: a small file next to the log, with the suffix `.removals`, contains the
/// last 1,024 removals, and a value that a multiplexer obtained before more removals than that is not written. It also
/// contains the last refreshes and clears by tag, as digests.
///
/// If the directory is removed during a write or between writes, the next one creates it again.
///
/// ## Removed entries
///
/// Removing everything or all entries with a prefix replaces the file by a new one, so that no bytes of the removed
/// entries remain. The bytes of entries that are removed by their keys remain until the file is rewritten. The next
/// `flush()` of the multiplexer or map that has removed them rewrites it, and so does clearing a multiplexer.
///
/// ## Errors
///
/// If the system fails, operations throw a ``StorageError``, or a `CacherError` with one for each key. Examples
/// are missing permissions, a full disk, and a file that another process keeps locked for more than ten seconds.
/// A key whose new entry could not be stored keeps its old one. Removing entries and shrinking the file also
/// work on a full disk.
///
/// ## Slow disks
///
/// Values are encoded and decoded on the threads of the calling tasks; disk access blocks a serial queue of
/// the cacher instead. A cancelled `store` skips the parts that it has not begun to write.
///
/// - Important: Cachers with the same directory and value type share their entries; clearing one clears
///   them all. Use a separate directory for each. The default directory is specific to the program.
///
/// ## Topics
///
/// ### Creating a cacher
/// - ``init(directory:byteLimit:schema:)``
///
/// ### Reading
/// - ``entry(forKey:)``
/// - ``entries(forKeys:)``
///
/// ### Storing
/// - ``store(_:)``
///
/// ### Removing
/// - ``removeEntries(forKeys:)``
/// - ``removeEntries(withPrefix:)``
/// - ``removeAllEntries()``
/// - ``generation``
public final actor JSONLogCacher<Value: Codable & Sendable>: BatchReadingCacher {
  private nonisolated let log: LogStore

  /// Opens the log in a directory, or creates one.
  ///
  /// The content is read by the first operation.
  ///
  /// - Parameters:
  ///   - directory: The directory of the file. The default is a folder of this program in the user's
  ///     caches directory, which is `$XDG_CACHE_HOME` or `~/.cache` on Linux.
  ///   - byteLimit: The maximum size of the file. Before the file exceeds it, the oldest entries by
  ///     `storedAt` are evicted: as many as necessary, or enough to free an eighth if the limit is more than
  ///     1 MiB. An entry that exceeds the limit is not stored.
  ///   - schema: A name for the format of the values, such as `"profile 2"`; entries stored with another
  ///     schema are removed. The default is the full name of the type.
  /// - Throws: A ``StorageError`` if the file cannot be opened or created for reading and writing. The content of
  ///   the file causes no error.
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

  /// The number of removals from the file so far, by all instances and processes.
  public nonisolated var generation: CacheGeneration? { log.generation }

  /// Returns the entry of a key.
  ///
  /// - Parameter key: The key.
  /// - Returns: The entry, regardless of its age, or `nil` if there is none or it is damaged.
  /// - Throws: A ``StorageError`` if the file cannot be read.
  @concurrent
  public nonisolated func entry(forKey key: String) async throws -> CacheEntry<Value>? {
    let key = key.canonicalSpelling
    let (records, marks) = try await log.read([key])
    return records[key].flatMap { Self.entry(of: $0, marks) }
  }

  /// Returns the entries of several keys.
  ///
  /// - Parameter keys: The keys.
  /// - Returns: The entries, regardless of their age, without damaged ones.
  /// - Throws: A ``StorageError`` if the file cannot be read.
  @concurrent
  public nonisolated func entries(
    forKeys keys: Set<String>
  ) async throws -> [String: CacheEntry<Value>] {
    let (records, marks) = try await log.read(Set(keys.map(\.canonicalSpelling)))
    return records.compactMapValues { Self.entry(of: $0, marks) }
  }

  private static func entry(of record: LogRecord, _ marks: StoredMarks) -> CacheEntry<Value>? {
    guard
      let payload = LogPayload.decode(record.payload),
      let value = try? JSONDecoder().decode(Value.self, from: payload.json)
    else { return nil }
    var entry = CacheEntry(
      value: value,
      storedAt: record.label.storedAt,
      validator: record.label.validator,
      directives: payload.directives
    )
    entry.note(marks, record.label.key, tags: payload.tags, since: payload.start)
    return entry
  }

  /// Stores entries durably, except entries that have been removed since their generation.
  ///
  /// - Parameter entries: The entries by key.
  /// - Throws: A `CacherError` with the keys whose entries were not stored. These keys keep their old
  ///   entries.
  @concurrent
  public nonisolated func store(_ entries: [String: CacheEntry<Value>]) async throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    var failures: [String: any Error] = [:]
    var records: [LogStore.Entry] = []
    var present: CacheGeneration?
    records.reserveCapacity(entries.count)
    for (key, entry) in entries {
      let key = key.canonicalSpelling
      do {
        let json = try encoder.encode(entry.value)
        // An entry without a generation is as old as its storing.
        if entry.generation == nil, present == nil { present = log.generation }
        let payload = LogPayload.encode(
          json,
          directives: entry.directives,
          tags: entry.tags,
          start: (entry.generation ?? present)?.start
        )
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
            generation: entry.generation,
            tags: entry.tags
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

  /// Removes the entries of several keys durably, even if the task is cancelled.
  ///
  /// - Parameter keys: The keys.
  /// - Throws: A `CacherError` with the keys whose entries may remain.
  @concurrent
  public nonisolated func removeEntries(forKeys keys: Set<String>) async throws {
    guard !keys.isEmpty else { return }
    do {
      try await log.remove(Set(keys.map(\.canonicalSpelling)))
    } catch {
      throw CacherError(failures: Dictionary(uniqueKeysWithValues: keys.map { ($0, error) }))
    }
  }

  /// Removes all entries durably, even if the task is cancelled.
  ///
  /// - Throws: A ``StorageError`` if entries may remain.
  @concurrent
  public nonisolated func removeAllEntries() async throws {
    try await log.removeAll()
  }

  /// Removes all entries whose keys have a prefix, durably, even if the task is cancelled.
  ///
  /// - Parameter prefix: The prefix of the keys.
  /// - Throws: A ``StorageError`` if entries may remain.
  @concurrent
  public nonisolated func removeEntries(withPrefix prefix: String) async throws {
    try await log.remove(withPrefix: prefix.canonicalSpelling)
  }
}

extension JSONLogCacher: MarkingCacher {
  @concurrent
  package nonisolated func note(_ marks: [CacheMark]) async throws -> CacheGeneration {
    try await log.note(marks, isDurable: marks.contains(where: \.isClear))
  }

  @concurrent
  package nonisolated func erase(isComplete: Bool) async throws {
    try await log.erase(isComplete: isComplete)
  }
}

extension JSONLogCacher: Hashable {
  /// Returns whether two cachers share a file.
  public static func == (left: JSONLogCacher, right: JSONLogCacher) -> Bool {
    left.log.path == right.log.path
  }

  /// Hashes the path of the file.
  public nonisolated func hash(into hasher: inout Hasher) {
    hasher.combine(log.path)
  }
}
