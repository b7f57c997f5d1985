public import Plexus
internal import PlexusSupport

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A cacher that stores each entry as a readable JSON file.
///
/// Use it for a few values that are stored occasionally, such as those of single multiplexers, or if
/// people must be able to read the files. For many small values, use ``JSONLogCacher``, which stores a batch
/// with one write.
///
/// ```swift
/// import Plexus
/// import PlexusStorage
///
/// let cacher = JSONFileCacher<[String]>()
/// let entry = CacheEntry(value: ["Ada", "Grace"], storedAt: .seconds(1_700_000_000))
/// try await cacher.store(["names": entry])
/// let names = try await cacher.entry(forKey: "names")?.value ?? []
/// print(names)
/// ```
///
/// ## Files
///
/// The directory and its parents are created by the first store or removal, with permissions 0700; the files
/// have 0600. An existing directory keeps its permissions. Several cachers, also of different types, can share
/// a directory: a file name consists of the name of the type, followed by the key or, if the key is not
/// a portable file name, by its SHA-256 digest. Keys that are equal under Unicode canonical equivalence
/// have the same file.
///
/// ## Errors
///
/// A file that is damaged, incomplete, or of another schema or key is ignored and replaced by the next
/// store. If the system fails, operations throw a ``StorageError``, or a `CacherError` with one for each key.
/// Examples are missing permissions and a full disk. A key whose new entry could not be stored keeps its old
/// one.
///
/// ## Crashes and multiple processes
///
/// A file is written under a temporary name, made durable and then renamed, so each key always has either
/// its old entry or its new one in full. A write is durable when the call returns. Any number of instances
/// and processes can use one directory at the same time. Temporary files of a killed process are removed by
/// the first read or store of an instance. An entry that one instance removes is not written back by another
/// that had it in memory: a small file with the suffix `.removals` contains the last 1,024 removals,
/// and a value that a multiplexer obtained before more removals than that is not written. It also contains the last
/// refreshes and clears by tag, as digests.
///
/// If the directory is removed during a write or between writes, the next one creates it again.
///
/// ## Slow disks
///
/// Values are encoded and decoded on the threads of the calling tasks; disk access blocks a serial queue of
/// the cacher instead. Copies of a cacher share this queue. A cancelled `store` skips the parts that
/// it has not begun to write.
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
public struct JSONFileCacher<Value: Codable & Sendable>: BatchReadingCacher {
  private let folder: EntryFolder
  private let envelope: Envelope<Value>

  /// Creates a cacher without accessing the disk.
  ///
  /// - Parameters:
  ///   - directory: The directory of the files. The default is a folder of this program in the user's
  ///     caches directory, which is `$XDG_CACHE_HOME` or `~/.cache` on Linux.
  ///   - byteLimit: The maximum total size of the files of this type in the directory. When a new file exceeds
  ///     it, the oldest files by `storedAt` are evicted as soon as the new one is in its place. A file that exceeds the limit by itself is
  ///     not stored. With a limit, a store lists all files once for every 64 entries.
  ///   - schema: A name for the format of the values, such as `"profile 2"`; entries stored with another
  ///     schema are ignored. The default is the full name of the type.
  /// - Precondition: The directory is a file URL, and the byte limit is positive.
  public init(directory: URL? = nil, byteLimit: Int? = nil, schema: String? = nil) {
    self.init(
      path: directory.map(path(of:)) ?? defaultDirectoryPath(),
      byteLimit: byteLimit,
      schema: schema,
      fileSystem: POSIXFileSystem()
    )
  }

  init(path: String, byteLimit: Int?, schema: String?, fileSystem: any FileSystem) {
    precondition(byteLimit ?? 1 > 0, "A byte limit must be positive; leave it out for no limit")
    folder = EntryFolder(
      path: path,
      names: FileNames(Value.self),
      byteLimit: byteLimit,
      fileSystem: fileSystem
    )
    envelope = Envelope(schema: schema ?? FileNames.fullName(of: Value.self))
  }

  /// The number of removals of this type in the directory so far, by all instances and processes.
  public var generation: CacheGeneration? { folder.generation }

  /// Returns the entry of a key.
  ///
  /// - Parameter key: The key.
  /// - Returns: The entry, regardless of its age, or `nil` if there is none, or it is damaged or of another
  ///   schema.
  /// - Throws: A ``StorageError`` if the file cannot be read.
  @concurrent
  public func entry(forKey key: String) async throws -> CacheEntry<Value>? {
    let key = key.canonicalSpelling
    guard let (bytes, marks) = try await folder.read(key) else { return nil }
    return envelope.decode(bytes, key: key, marks: marks)
  }

  /// Returns the entries of several keys.
  ///
  /// - Parameter keys: The keys.
  /// - Returns: The entries, regardless of their age, without damaged ones and ones of another schema.
  /// - Throws: A ``StorageError`` if a file cannot be read and none of the others can.
  @concurrent
  public func entries(forKeys keys: Set<String>) async throws -> [String: CacheEntry<Value>] {
    let (contents, marks) = try await folder.read(Set(keys.map(\.canonicalSpelling)))
    var entries: [String: CacheEntry<Value>] = [:]
    for (key, bytes) in contents { entries[key] = envelope.decode(bytes, key: key, marks: marks) }
    return entries
  }

  /// Stores entries durably, except entries that have been removed since their generation.
  ///
  /// - Parameter entries: The entries by key.
  /// - Throws: A `CacherError` with the keys whose entries were not stored. These keys keep their old
  ///   entries.
  @concurrent
  public func store(_ entries: [String: CacheEntry<Value>]) async throws {
    var failures: [String: any Error] = [:]
    var files: [EntryFolder.File] = []
    var present: CacheGeneration?
    for (key, entry) in entries {
      let key = key.canonicalSpelling
      do {
        // An entry without a generation is as old as its storing.
        if entry.generation == nil, present == nil { present = folder.generation }
        let start = (entry.generation ?? present)?.start
        let bytes = try envelope.encode(entry, key: key, start: start)
        files.append(
          EntryFolder.File(
            key: key,
            bytes: bytes,
            storedAt: entry.storedAt,
            generation: entry.generation,
            tags: entry.tags
          )
        )
      } catch {
        failures[key] = error
      }
    }
    files.sort { ($0.storedAt, $0.key) < ($1.storedAt, $1.key) }
    if !files.isEmpty { failures.merge(await folder.write(files)) { first, _ in first } }
    if !failures.isEmpty { throw CacherError(failures: failures) }
  }

  /// Removes the entries of several keys durably, even if the task is cancelled.
  ///
  /// - Parameter keys: The keys.
  /// - Throws: A `CacherError` with the keys whose entries may remain.
  @concurrent
  public func removeEntries(forKeys keys: Set<String>) async throws {
    guard !keys.isEmpty else { return }
    let failures = await folder.remove(Set(keys.map(\.canonicalSpelling)))
    if !failures.isEmpty { throw CacherError(failures: failures) }
  }

  /// Removes all entries of this type in the directory durably, even if the task is cancelled.
  ///
  /// - Throws: A ``StorageError`` if entries may remain.
  @concurrent
  public func removeAllEntries() async throws {
    try await folder.removeAll()
  }

  /// Removes all entries of this type in the directory whose keys have a prefix.
  ///
  /// The removal is durable and is carried out even if the task is cancelled. It reads every file of this
  /// type and also removes damaged ones.
  ///
  /// - Parameter prefix: The prefix of the keys.
  /// - Throws: A ``StorageError`` if entries may remain.
  @concurrent
  public func removeEntries(withPrefix prefix: String) async throws {
    let prefix = prefix.canonicalSpelling
    try await folder.removeAll(withPrefix: prefix) { bytes in
      // The key of a damaged file is unknown, and the file holds no usable entry.
      envelope.key(in: bytes)?.utf8.starts(with: prefix.utf8) ?? true
    }
  }
}

extension JSONFileCacher: MarkingCacher {
  @concurrent
  package func note(_ marks: [CacheMark]) async throws -> CacheGeneration {
    try await folder.note(marks, isDurable: marks.contains(where: \.isClear))
  }

  @concurrent
  package func erase(isComplete: Bool) async throws {
    try await folder.erase()
  }
}

extension CacheMark {
  /// Whether it must survive a power failure.
  var isClear: Bool { if case .clearedTag = self { true } else { false } }
}

extension JSONFileCacher: Hashable {
  /// Returns whether two cachers share their files.
  public static func == (left: Self, right: Self) -> Bool {
    left.folder.id == right.folder.id
  }

  /// Hashes the directory and the name of the type.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(folder.id)
  }
}
